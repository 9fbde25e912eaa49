#!/bin/sh
# Creates the keys of the bus at the first `docker compose up`, and copies the key of each service to the service's volume.
# Later starts keep the keys and renew their permissions. It runs as root, without a network and with the
# capability CHOWN only.
set -eu

if [ -e /keys/all/auth ]; then cox admin auth --out /keys/all/auth --renew; else cox admin auth --out /keys/all/auth; fi
# An installation of an earlier release has no keys of these roles.
[ -e /keys/all/auth/retention.nk ] || cox admin auth --out /keys/all/auth --add retention
[ -e /keys/all/auth/tenants/default/personas.nk ] || cox admin auth --out /keys/all/auth --add default/personas

# give FILE VOLUME NAME: copies a file atomically.
give() {
  rm -f "/keys/$2/.$3"
  cp "/keys/all/auth/$1" "/keys/$2/.$3"
  chmod 0400 "/keys/$2/.$3"
  chown 1000:1000 "/keys/$2/.$3"
  mv -f "/keys/$2/.$3" "/keys/$2/$3"
}
give accounts.conf accounts accounts.conf
give admin.nk admin key.nk
give host.nk host key.nk
give retention.nk retention key.nk
for role in hooks tools personas gateway operator; do give "tenants/default/$role.nk" "$role" key.nk; done
# The operator also has a token of the gateway. `cox admin token` adds others.
# If an earlier start ended while it added the token, tokens.json has a token that no file holds.
if [ ! -s /keys/all/auth/operator.token ]; then
  if [ -e /keys/all/auth/tokens.json ]; then
    cox admin token remove operator --tokens /keys/all/auth/tokens.json || true
  fi
  cox admin token add operator --tokens /keys/all/auth/tokens.json --scope read,run,steer > /keys/all/auth/.operator.token
  mv -f /keys/all/auth/.operator.token /keys/all/auth/operator.token
fi
give tokens.json gateway-tokens tokens.json
give operator.token operator gateway.token

# The servers and the command runners do not run as root either.
chown 1000:1000 /data/nats-1 /data/nats-2 /data/nats-3 /commands/1 /commands/2
# A new, empty volume gets the user of the services. A mounted folder keeps its owner.
if [ "$(stat -c %u /workspace)" = 0 ] && [ -z "$(ls -A /workspace)" ]; then chown 1000:1000 /workspace; fi
