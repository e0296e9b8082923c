#!/bin/bash
# Runs on a node that has just booted: brings up its network, then containerd, kubelet and kube-proxy.
# Environment: NODE_ADDRESSES, NODE_GATEWAYS, NODE_IP, NODE_DISK, NODE_FILES (copied over /) and NODE_LOGS.
set -eu

ip link set eth0 up
for address in $NODE_ADDRESSES; do
  case $address in
    *:*) ip address add "$address" dev eth0 nodad ;;
    *) ip address add "$address" dev eth0 ;;
  esac
done
for gateway in $NODE_GATEWAYS; do ip route add default via "$gateway"; done
# Bridged packets of a node's pods must meet kube-proxy's NAT on their way back, too.
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 \
  net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1

mkdir -p "$NODE_DISK" /var/log/pods /var/log/containers /run/cni /opt/cni/bin /etc/cni/net.d
mount /dev/vda "$NODE_DISK"
cp "$NODE_DISK"/cni/* /opt/cni/bin/
rm -rf /etc/cni/net.d/*
mkdir -p "$NODE_FILES/etc/cni/net.d"
cp -a "$NODE_FILES"/. /
# What is chained into it stays chained after a power failure: no pod starts without it.
mount --bind "$NODE_FILES/etc/cni/net.d" /etc/cni/net.d
# kubelet mounts below this folder, which an overlay's upper layer does not allow for every file system.
for folder in /var/lib/kubelet /var/lib/cni; do
  mkdir -p "$folder"
  mount -t tmpfs -o mode=755 node "$folder"
done
mount --make-rshared /

export PATH=$NODE_DISK/bin:$PATH
# Memory is plenty and emulated processors are slow: the Go programs collect their garbage seldom, and wake no second
# thread for what one can do (a sixth less processor time for a pod that starts).
export GOGC=400 GOMAXPROCS=1
start() { # NAME COMMAND..., again whenever it ends, as systemd does on a node
  local name=$1
  shift
  setsid bash -c 'while :; do "$@"; sleep 1; done' "$name" "$@" >>"$NODE_LOGS/$name.log" 2>&1 </dev/null &
}
start containerd containerd --config /etc/containerd/config.toml --log-level warn
until [ -S /run/containerd/containerd.sock ]; do sleep 0.1; done
# kubelet and kube-proxy have loops of a tenth of a second, and each wakes up by itself: with this slack (prctl(2),
# PR_SET_TIMERSLACK) they wake up together, and kubelet takes half the processor time. Not containerd, whose containers
# would inherit it.
echo 100000000 >/proc/$$/timerslack_ns
start kubelet kubernetes kubelet --config /etc/kubernetes/kubelet.json \
  --kubeconfig /etc/kubernetes/kubelet.kubeconfig --hostname-override "$HOSTNAME" --node-ip "$NODE_IP" --housekeeping-interval 60s
start kube-proxy kubernetes kube-proxy --config /etc/kubernetes/kube-proxy.json
