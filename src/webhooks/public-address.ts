// Which addresses a webhook may be sent to. An endpoint in a private network could be a service that trusts its neighbours, such as the
// metadata address of a cloud, and an endpoint's name may come to lead there without the operator's doing.
import { BlockList, isIP } from 'node:net';

/** Networks that are not reachable over the internet (IANA's registry of special-purpose addresses), multicast and reserved ones. */
const notPublic4 = toList('ipv4', [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // Every machine in Azure reaches its host at this address.
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]);

/** All other networks of IPv6, among them loopback, link-local, mapped and translated IPv4 addresses, are not public. */
const public6 = toList('ipv6', ['2000::/3']);
/** Teredo and other protocol assignments, documentation, 6to4. */
const notPublic6 = toList('ipv6', ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']);

/** True for an address of the internet. */
export function isPublic(address: string): boolean {
  // A zone belongs to a link-local address.
  if (address.includes('%')) return false;
  const family = isIP(address);
  if (family === 4) return !notPublic4.check(address, 'ipv4');
  return family === 6 && public6.check(address, 'ipv6') && !notPublic6.check(address, 'ipv6');
}

function toList(family: 'ipv4' | 'ipv6', networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}
