#!/bin/sh
# Runs systemd in a container: machine.sh SCRATCH FILES USER. Its root is an overlay in memory over the host's, which it cannot change. The
# network is shared. Start it in new mount, pid, ipc, uts and cgroup namespaces.
set -e
scratch=$1 files=$2 user=$3
mount --make-rprivate /
mount -t tmpfs tmpfs "$scratch"
mkdir "$scratch/upper" "$scratch/work" "$scratch/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" "$scratch/root"
root=$scratch/root
cp -a "$files/." "$root/"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
for folder in run tmp sys/fs/cgroup; do mount -t tmpfs -o mode=755 tmpfs "$root/$folder"; done
chmod 1777 "$root/tmp"
# cgroup v1 hosts have a hierarchy for systemd; others have only cgroup v2.
if [ -d /sys/fs/cgroup/systemd ]; then
	mkdir "$root/sys/fs/cgroup/systemd"
	mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
else
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
fi
cd "$root"
mkdir -p before
pivot_root . before
umount -l before
useradd --system --no-create-home --shell /usr/sbin/nologin "$user"
: > /etc/fstab
# Disable the host's own units except the journal.
for unit in /lib/systemd/system/sysinit.target.wants/* /lib/systemd/system/local-fs.target.wants/* /lib/systemd/system/multi-user.target.wants/* \
	/etc/systemd/system/*.wants/*; do
	case $unit in
	*systemd-journald.service | *"*") ;;
	*) ln -sf /dev/null "/etc/systemd/system/$(basename "$unit")" ;;
	esac
done
printf '[Unit]\nRequires=systemd-journald.service basic.target\nAfter=basic.target\n' > /etc/systemd/system/drill.target
exec env -i container=drill PATH="$PATH" /lib/systemd/systemd --system --unit=drill.target --log-target=console --show-status=no
