#!/bin/sh
# Runs a Ceph cluster on one machine, in memory, with an S3 gateway. Arguments: an empty folder, two free ports (monitor, gateway), access
# key, secret. Prints `ready` when the gateway answers. Runs until SIGTERM or SIGINT, then kills the processes it started.
set -eu
cd "$1"
folder=$PWD monitor=$2 gateway=$3 access=$4 secret=$5
export CEPH_CONF="$folder/ceph.conf"
fsid=$(cat /proc/sys/kernel/random/uuid)
cat >ceph.conf <<EOF
[global]
fsid = $fsid
mon host = v1:127.0.0.1:$monitor
ms bind msgr2 = false
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
mon allow pool size one = true
mon warn on pool no redundancy = false
osd crush chooseleaf type = 0
osd objectstore = memstore
osd crush update on start = false
osd class update on start = false
memstore device bytes = 2147483648
log file = $folder/\$name.log
run dir = $folder
admin socket = $folder/\$name.asok
mon data = $folder/mon
osd data = $folder/osd
mgr data = $folder/mgr
rgw data = $folder/rgw
rgw frontends = beast endpoint=127.0.0.1:$gateway
rgw crypt require ssl = false
EOF
mkdir mon osd mgr rgw
started=
finish() { trap - EXIT; for pid in $started; do kill -9 "$pid" 2>>errors || true; done; wait; exit 0; }
trap finish EXIT TERM INT
ceph-authtool --create-keyring keyring --gen-key -n mon. --cap mon 'allow *' >>errors
monmaptool --create --fsid "$fsid" --addv a "[v1:127.0.0.1:$monitor]" monmap >>errors
ceph-mon --mkfs -i a --monmap monmap --keyring keyring >>errors 2>&1
ceph-mon -f -i a >>errors 2>&1 &
started="$started $!"
ceph-mgr -f -i x >>errors 2>&1 &
started="$started $!"
id=$(ceph osd create)
ceph-osd --mkfs -i "$id" --osd-uuid "$(cat /proc/sys/kernel/random/uuid)" >>errors 2>&1
ceph osd crush add "osd.$id" 1 root=default host=localhost >>errors 2>&1
ceph-osd -f -i "$id" >>errors 2>&1 &
started="$started $!"
radosgw -f -n client.rgw >>errors 2>&1 &
started="$started $!"
until curl -s -o curl.out "http://127.0.0.1:$gateway/" 2>>errors; do sleep 1; done
radosgw-admin user create --uid=intake --display-name=intake --access-key="$access" --secret-key="$secret" >>errors 2>&1
echo ready
wait
