import { FounatError } from "../../error.ts";

/** What programs say where one of them, a module of the kernel, or a kernel that knows the module is missing. */
const LACKS =
  /not found|No such file or directory|missing kernel module|not supported|Couldn't load|Failed to load|No chain\/target\/match|unknown|incompatible/i;

/** @throws FounatError `backend-unavailable` where the error tells of something missing, else that error */
export function unavailable(error: unknown): never {
  const isMissing =
    error instanceof FounatError && error.code === "kernel-command-failed" && LACKS.test(error.message);
  if (!isMissing) throw error;
  throw new FounatError(
    "backend-unavailable",
    `this host lacks something that the iptables backend needs: ${error.message}; it needs the programs of Debian's ` +
      "packages iptables, ipset and iproute2, and the kernel modules ip_set_hash_ip, ip_set_hash_ipmark, ip_set_hash_net, " +
      "xt_set, xt_addrtype, xt_comment, xt_conntrack, xt_CT, xt_devgroup, xt_mark, xt_nat, xt_TCPMSS, xt_tcpudp, ip6t_rt, " +
      "sch_ingress, cls_basic, em_ipset, act_gact and act_skbedit: load them on the node, or use the nftables backend",
    { cause: error },
  );
}
