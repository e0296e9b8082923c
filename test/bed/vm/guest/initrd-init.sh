#!/bin/busybox sh
# First process of a virtual machine, in its initrd. It makes the root: the host's own, read-only over 9p, under a
# tmpfs that takes every change. When a step fails it ends, the kernel panics, and with it QEMU ends.
set -e
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
if [ -n "$VM_PROBE" ]; then # only asked whether a kernel boots here at all
  echo the kernel is up
  /bin/busybox reboot -f
fi
# The kit puts the insmod commands here.
@MODULES@
/bin/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=524288,cache=loose root /lower
/bin/busybox mount -t tmpfs -o size=80% changes /changes
/bin/busybox mkdir /changes/upper /changes/work
/bin/busybox mount -t overlay -o lowerdir=/lower,upperdir=/changes/upper,workdir=/changes/work overlay /root
/bin/busybox mount --move /dev /root/dev
/bin/busybox umount /proc
exec /bin/busybox switch_root /root /bin/bash "$VM_INIT"
