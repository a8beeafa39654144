#!/bin/sh
# Runs OpenStack Swift on one machine with its S3 interface. Arguments: an empty folder on a disk with extended attributes, five free ports
# (memcached, account, container, object, proxy), access key, secret. Prints `ready` when the proxy answers. Runs until SIGTERM or SIGINT,
# then ends the processes it started.
set -eu
cd "$1"
folder=$PWD cache=$2 account=$3 container=$4 object=$5 proxy=$6 access=$7 secret=$8
user=$(id -un)
mkdir -p devices/d1 cache
for kind in account container object; do
  eval port=\$$kind
  cat >$kind.conf <<EOF
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $port
user = $user
swift_dir = $folder
devices = $folder/devices
mount_check = false
workers = 1
log_address = $folder/none
[pipeline:main]
pipeline = $kind-server
[app:$kind-server]
use = egg:swift#$kind
[$kind-replicator]
[$kind-updater]
[$kind-auditor]
EOF
  swift-ring-builder $kind.builder create 4 1 1 >>errors
  swift-ring-builder $kind.builder add "r1z1-127.0.0.1:$port/d1" 1 >>errors
  swift-ring-builder $kind.builder rebalance >>errors
done
cat >proxy.conf <<EOF
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $proxy
user = $user
swift_dir = $folder
workers = 2
log_address = $folder/none
[pipeline:main]
pipeline = catch_errors gatekeeper proxy-logging cache listing_formats s3api tempauth copy dlo slo versioned_writes symlink proxy-logging proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:tempauth]
use = egg:swift#tempauth
user_intake_$access = $secret .admin
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:proxy-logging]
use = egg:swift#proxy_logging
[filter:copy]
use = egg:swift#copy
[filter:dlo]
use = egg:swift#dlo
[filter:slo]
use = egg:swift#slo
[filter:symlink]
use = egg:swift#symlink
[filter:versioned_writes]
use = egg:swift#versioned_writes
allow_object_versioning = true
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:$cache
EOF
cat >swift.conf <<EOF
[swift-hash]
swift_hash_path_prefix = intake
swift_hash_path_suffix = intake
EOF
export SWIFT_CONF="$folder/swift.conf"
started=
finish() { trap - EXIT; for pid in $started; do kill "$pid" 2>>errors || true; done; wait; exit 0; }
trap finish EXIT TERM INT
memcached -u "$user" -l 127.0.0.1 -p "$cache" >>errors 2>&1 &
started="$started $!"
for kind in account container object proxy; do
  swift-$kind-server "$folder/$kind.conf" >>errors 2>&1 &
  started="$started $!"
done
until curl -s -o curl.out "http://127.0.0.1:$proxy/" 2>>errors; do sleep 1; done
echo ready
wait
