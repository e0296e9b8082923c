import { FounatError } from "../../error.ts";

/** What libxt_set and tc say without CAP_NET_RAW, because they ask the kernel by a raw socket. */
const LACKS_NET_RAW = /Can't open socket to ipset/i;

/** What programs say where one of them, a module of the kernel, or a kernel that knows the module is missing. */
const LACKS =
  /not found|No such file or directory|missing kernel module|not supported|Couldn't load|Failed to load|unable to initialize table|No chain\/target\/match|unknown|incompatible/i;

/**
 * What was said and what to do come first, because who shows it to people may cut it off.
 *
 * @throws FounatError `backend-unavailable` where the error tells of something missing, else that error
 */
export function unavailable(error: unknown): never {
  const isFailure = error instanceof FounatError && error.code === "kernel-command-failed";
  const lacksNetRaw = isFailure && LACKS_NET_RAW.test(error.message);
  if (!lacksNetRaw && !(isFailure && LACKS.test(error.message))) throw error;
  const said = error.message.replace(/^.*? failed: /s, "");
  const capability = lacksNetRaw ? "give the gateway's program the capability CAP_NET_RAW, " : "";
  throw new FounatError(
    "backend-unavailable",
    `this host lacks something that the iptables backend needs: ${said}; ${capability}install Debian's packages iptables, ` +
      "ipset and iproute2, and load the kernel modules on the node, or use the nftables backend; the modules are " +
      "ip_set_hash_ip, ip_set_hash_ipmark, ip_set_hash_net, " +
      "xt_set, xt_addrtype, xt_comment, xt_conntrack, xt_CT, xt_devgroup, xt_mark, xt_nat, xt_TCPMSS, xt_tcpudp, ip6t_rt, " +
      "sch_ingress, cls_basic, em_ipset, act_gact and act_skbedit, and of iptables-legacy ip_tables and ip6_tables with their tables",
    { cause: error },
  );
}
