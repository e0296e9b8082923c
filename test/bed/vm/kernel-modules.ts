/** Modules that the initrd needs before it has a root file system. */
export const BOOT_MODULES = ["9p", "9pnet_virtio", "virtio_pci", "overlay"] as const;

/** Modules that are loaded in every virtual machine: cards, disks, containers, the data path and kube-proxy's two modes. */
export const GUEST_MODULES = [
  ["virtio_net", "virtio_blk", "ext4"],
  ["veth", "bridge", "br_netfilter", "dummy", "vxlan", "sch_netem", "tun"],
  ["fou", "fou6", "ipip", "ip6_tunnel"],
  ["nf_tables", "nft_chain_nat", "nft_masq", "nft_nat", "nft_redir", "nft_ct", "nft_numgen", "nft_hash"],
  // kube-proxy in nftables mode needs the reject modules of both families as well, else no Service works.
  ["nft_reject_inet", "nft_reject_ipv4", "nft_reject_ipv6", "nft_fib_inet", "nft_fib_ipv4", "nft_fib_ipv6"],
  ["nft_limit", "nft_log", "nft_compat", "nft_socket", "nft_tproxy", "nf_conntrack_netlink"],
  ["ip_tables", "ip6_tables", "iptable_nat", "ip6table_nat", "iptable_filter", "ip6table_filter"],
  ["iptable_mangle", "ip6table_mangle", "iptable_raw", "ip6table_raw"],
  [
    "xt_comment",
    "xt_mark",
    "xt_conntrack",
    "xt_MASQUERADE",
    "xt_nat",
    "xt_statistic",
    "xt_recent",
    "xt_addrtype",
  ],
  [
    "xt_multiport",
    "xt_connmark",
    "xt_tcpudp",
    "xt_TCPMSS",
    "xt_set",
    "xt_limit",
    "ip_set",
    "ip_set_hash_net",
  ],
  // A gateway with the iptables backend.
  ["ip_set_hash_ip", "ip_set_hash_ipmark", "xt_CT", "xt_devgroup", "ip6t_rt", "em_ipset"],
  ["sch_ingress", "cls_basic", "act_gact", "act_skbedit"],
].flat();
