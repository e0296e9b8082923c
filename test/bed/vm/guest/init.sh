#!/bin/bash
# First process of a virtual machine once its root is there. It mounts what a distribution's init would, loads the
# modules of the data path, and serves commands. The kernel puts unknown parameters of its command line into the
# environment: VM_KIT, VM_NAME, VM_PATH, VM_SHARES ("tag=path tag=path") and VM_MODULES ("name,name").
export PATH=$VM_PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/run/tmp
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs -o mode=755 run /run
mkdir -p /dev/pts /dev/shm /run/tmp /run/netns
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t cgroup2 none /sys/fs/cgroup
# Containers that mount /run/netns with HostToContainer propagation see later mounts only below a shared mount.
mount --make-rshared /

# The kernel autoloads from /lib/modules; what nothing asks for by name is loaded here.
mkdir -p /lib/modules
mount --bind "$VM_KIT/lib/modules" /lib/modules
modprobe -a ${VM_MODULES//,/ }

for share in $VM_SHARES; do
  mkdir -p "${share#*=}"
  mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=none "${share%%=*}" "${share#*=}"
done

hostname "$VM_NAME"
ip link set lo up

# The last card leads to the host's exec channel only. It gets a namespace of its own, so that nothing under test
# meets it. 198.18.255.0/24 is the network that QEMU's user-mode stack plays there.
ip netns add exec-channel
for card in /sys/class/net/*; do
  [ "$(cat "$card/address")" = 52:54:00:00:ff:01 ] && ip link set "${card##*/}" netns exec-channel name exec0
done
ip -n exec-channel address add 198.18.255.15/24 dev exec0
ip -n exec-channel link set exec0 up
"$VM_KIT/exec-server" /run/netns/exec-channel 198.18.255.15:7000 >/dev/console 2>&1 &

# bash reaps the orphans that end up here.
while :; do wait; sleep 3600 & done
