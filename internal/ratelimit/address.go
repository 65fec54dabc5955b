package ratelimit

import "net/netip"

// AddressKey returns the key of a client address: IPv4 addresses unchanged, IPv6 addresses cut to their /64, since one household or host
// commonly holds a whole /64. Text that is not an address is its own key. Source: docs/decisions/limits.md, "Which limit applies".
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
