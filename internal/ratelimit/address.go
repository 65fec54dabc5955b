package ratelimit

import "net/netip"

// AddressKey is the key of a client address: an IPv4 address as it is, an IPv6 address cut to its /64, since one
// household or host commonly holds a whole /64. Text that is no address is its own key.
// Source: docs/decisions/limits.md, "Which limit applies".
func AddressKey(address string) string {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	block, err := addr.Prefix(64)
	if err != nil {
		return address
	}
	return block.String()
}
