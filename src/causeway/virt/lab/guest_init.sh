#!/bin/sh
# The guest of the demonstration image: /init of its initial RAM disk. It stays in memory; its root disk is at /disk.
# What it says on the console is read by machines:
#   CAUSEWAY-GUEST boot=N vcpus=N memory_mb=N mac=MAC ip=ADDRESS hostname=NAME
#   CAUSEWAY-MARKER disk=NAME lines=N first=TEXT
#   CAUSEWAY-NIC device=ethN mac=MAC ip=ADDRESS
#   CAUSEWAY-CONFIG-DRIVE|METADATA hostname=NAME
#   CAUSEWAY-AGENT frozen|thawed|clock|trimmed
#   CAUSEWAY-READY
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
echo 3 > /proc/sys/kernel/printk

load() { for module in "$@"; do [ -f "/lib/$module.ko" ] && insmod "/lib/$module.ko" 2>/dev/null; done; }

load virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk
load failover net_failover button evdev virtio_console
# Switches in user space pass frames on as they are: without a checksum, if that was left to whoever is next.
insmod /lib/virtio_net.ko csum=0 2>/dev/null
[ -x /install ] && exec /install

power_button() {
    mkdir -p /etc/acpi/PWRF
    printf '#!/bin/sh\nexec /bin/sh /shutdown.sh\n' > /etc/acpi/PWRF/00000080
    chmod +x /etc/acpi/PWRF/00000080
    acpid -f -c /etc/acpi -l /dev/null &
}

# Answers hypervisors that want the file systems still for a moment or trimmed, or the clock right, as qemu-ga does.
agent() {
    tries=0
    until grep -qs org.qemu.guest_agent.0 /sys/class/virtio-ports/*/name; do
        [ $tries -lt 20 ] || return
        sleep 0.1; tries=$((tries + 1))
    done
    name=$(grep -l org.qemu.guest_agent.0 /sys/class/virtio-ports/*/name)
    name=${name%/name}
    exec 3<>"/dev/${name##*/}"
    # Nobody listens at first: that reads as an end.
    while sleep 0.2; do
        while read -r asked <&3; do
            answer='{"error": {"class": "CommandNotFound", "desc": "not known here"}}'
            case $asked in
            *guest-sync-delimited*) printf '\377' >&3; answer="{\"return\": $(number "$asked")}";;
            *guest-sync*) answer="{\"return\": $(number "$asked")}";;
            *guest-fsfreeze-freeze*) fsfreeze --freeze /disk && answer='{"return": 1}' && agent_says frozen;;
            *guest-set-time*) date -s "@$(seconds "$asked")" > /dev/null && answer='{"return": {}}' && agent_says clock;;
            *guest-fstrim*) fstrim /disk && answer='{"return": {"paths": []}}' && agent_says trimmed;;
            *guest-fsfreeze-thaw*) fsfreeze --unfreeze /disk && answer='{"return": 1}' && agent_says thawed;;
            esac
            echo "$answer" >&3
        done
    done
}

agent_says() { echo "CAUSEWAY-AGENT $1" > /dev/console; }

# Those of a time that is given in nanoseconds.
seconds() { echo "$1" | sed -n 's/.*"time": *\([0-9]*\)[0-9]\{9\}.*/\1/p'; }

number() { echo "$1" | sed -n 's/.*"id": *\([0-9]*\).*/\1/p'; }

cat > /shutdown.sh <<'SHUTDOWN'
echo CAUSEWAY-SHUTDOWN > /dev/console
sync
umount /disk || mount -o remount,ro /disk
sync
poweroff -f
SHUTDOWN

cat > /dhcp.sh <<'DHCP'
#!/bin/sh
case $1 in
bound|renew)
    ip addr flush dev "$interface"
    ip addr add "$ip/$mask" dev "$interface"
    [ -n "$mtu" ] && ip link set "$interface" mtu "$mtu"
    if [ -n "$staticroutes" ]; then
        # Option 121: these replace the router's (RFC 3442). OVN's metadata agent is reached by one of them.
        set -- $staticroutes
        while [ $# -ge 2 ]; do
            [ "$1" = 0.0.0.0/0 ] && [ "$interface" != eth0 ] || ip route replace "$1" via "$2" dev "$interface"
            shift 2
        done
    elif [ -n "$router" ] && [ "$interface" = eth0 ]; then
        ip route replace default via "${router%% *}"
    fi
    [ -n "$hostname" ] && [ "$interface" = eth0 ] && [ ! -e /run/named ] && hostname "$hostname"
    [ -n "$dns" ] && printf 'nameserver %s\n' $dns > /etc/resolv.conf
    if [ "$(cat "/run/ip.$interface" 2>/dev/null)" != "$ip" ]; then
        echo "$ip" > "/run/ip.$interface"
        mac=$(cat "/sys/class/net/$interface/address")
        echo "CAUSEWAY-NIC device=$interface mac=$mac ip=$ip" > /dev/console
    fi;;
esac
DHCP
chmod +x /dhcp.sh

# Starts DHCP on every interface that has none yet.
interfaces() {
    for path in /sys/class/net/eth*; do
        name=${path##*/}
        [ -e "$path" ] || continue
        [ -e "/run/dhcp.$name" ] && continue
        : > "/run/dhcp.$name"
        ip link set "$name" up
        udhcpc -i "$name" -p "/run/udhcpc.$name.pid" -s /dhcp.sh -f -t 30 -T 1 -A 1 -O mtu -O hostname -O staticroutes >/dev/null 2>&1 &
    done
    for seen in /run/dhcp.*; do
        name=${seen#/run/dhcp.}
        [ -e "$seen" ] && [ ! -e "/sys/class/net/$name" ] && rm -f "$seen" "/run/ip.$name"
    done
}

# Appends a line to the lines at the raw start of a disk; a disk that holds something else is left alone.
mark_disk() {
    dd "if=/dev/$1" bs=65536 count=1 2>/dev/null | tr -d '\000' > /run/marker
    if [ -s /run/marker ] && ! head -n 1 /run/marker | grep -q '^causeway-marker '; then
        echo "CAUSEWAY-MARKER disk=$1 lines=0 first=foreign"
        return
    fi
    id=$(cat /proc/sys/kernel/random/uuid)
    echo "causeway-marker $id boot $boot" >> /run/marker
    dd if=/run/marker "of=/dev/$1" bs=65536 conv=sync,fsync 2>/dev/null
    echo "CAUSEWAY-MARKER disk=$1 lines=$(grep -c . /run/marker) first=$(head -n 1 /run/marker)"
}

disks() {
    for path in /sys/block/vd*; do
        name=${path##*/}
        [ -e "$path" ] && [ "$name" != vda ] && [ ! -e "/run/disk.$name" ] || continue
        : > "/run/disk.$name"
        [ "$(cat "$path/ro")" = 1 ] || mark_disk "$name"
    done
    for seen in /run/disk.*; do
        name=${seen#/run/disk.}
        [ -e "$seen" ] && [ ! -e "/sys/block/$name" ] && rm -f "$seen"
    done
}

# What the guest reads of itself: from its config drive, or else from the metadata service.
instance_data() {
    load scsi_common scsi_mod cdrom sr_mod libata ata_piix isofs
    tries=0
    while [ ! -b /dev/sr0 ] && [ $tries -lt 20 ]; do sleep 0.1; tries=$((tries + 1)); done
    source=CONFIG-DRIVE data=/config/openstack/latest
    if [ ! -b /dev/sr0 ] || ! mkdir -p /config || ! mount -t iso9660 -o ro /dev/sr0 /config 2>/dev/null; then
        source=METADATA data=/run/metadata
        mkdir -p $data
        wait_for_address
        # The network may let the guest through a while after it boots; many guests have no metadata service at all.
        tries=0
        while fetch /openstack/latest/meta_data.json > $data/meta_data.json; [ ! -s $data/meta_data.json ]; do
            [ $tries -lt 30 ] || return
            sleep 2; tries=$((tries + 1))
        done
        fetch /openstack/latest/user_data > $data/user_data
    fi
    name=$(sed -n 's/.*"hostname": *"\([^"]*\)".*/\1/p' $data/meta_data.json 2>/dev/null)
    # The short name, as cloud-init sets it.
    [ -n "$name" ] && : > /run/named && hostname "${name%%.*}"
    echo "CAUSEWAY-$source hostname=$name"
    [ "$(head -c 2 $data/user_data 2>/dev/null)" = '#!' ] || return
    cp $data/user_data /run/user_data
    chmod +x /run/user_data
    /run/user_data
    echo "CAUSEWAY-USER-DATA exit=$?"
}

# The body of an answer with status 200. busybox's wget needs files for names that this image does not have.
fetch() {
    (printf 'GET %s HTTP/1.0\r\n\r\n' "$1"; sleep 1) | nc -w 5 169.254.169.254 80 2>/dev/null > /run/answer
    head -n 1 /run/answer | grep -q ' 200 ' && sed '1,/^\r*$/d' /run/answer
}

wait_for_address() {
    tries=0
    while [ -e /run/dhcp.eth0 ] && [ ! -e /run/ip.eth0 ] && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
}

# A shell without a prompt: what is typed at the console is done, and lines that others write stay whole.
console_shell() {
    while :; do cat /dev/console | sh > /dev/console 2>&1; sleep 1; done
}

mkdir -p /run /disk /etc
power_button
hostname causeway-guest
ip link set lo up
interfaces
tries=0
while [ ! -b /dev/vda ] && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
root=/dev/vda
[ -b /dev/vda1 ] && root=/dev/vda1
mount -t ext4 -o rw $root /disk || echo "CAUSEWAY-ERROR can't mount $root"
boot=$(($(grep -c '^boot ' /disk/marker 2>/dev/null) + 1))
[ -s /disk/marker ] || echo "causeway-marker $(cat /proc/sys/kernel/random/uuid)" > /disk/marker
echo "boot $boot" >> /disk/marker
sync
instance_data &
[ -x /more ] && /more &

wait_for_address
memory=0
for range in $(sed -n 's/^\([0-9a-f]*-[0-9a-f]*\) : System RAM/\1/p' /proc/iomem); do
    memory=$((memory + 0x${range#*-} - 0x${range%-*} + 1))
done
memory=$(((memory + 1048575) / 1048576))
mac=$(cat /sys/class/net/eth0/address 2>/dev/null)
echo "CAUSEWAY-GUEST boot=$boot vcpus=$(nproc) memory_mb=$memory mac=$mac ip=$(cat /run/ip.eth0 2>/dev/null)" \
    "hostname=$(hostname)"
echo "CAUSEWAY-MARKER disk=vda lines=$(grep -c '^boot ' /disk/marker) first=$(head -n 1 /disk/marker)"
disks
agent &
console_shell &
echo CAUSEWAY-READY
while :; do
    sleep 1
    interfaces
    disks
done
