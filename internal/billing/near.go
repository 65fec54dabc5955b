package billing

// setReachableByMinutes says which codes a month's minutes have come to, and can still come to: a month has room for all of them until it is over.
func (e *Engine) setReachableByMinutes(n *NearCode, day string) {
	n.Reachable = []string{}
	for _, code := range []string{FirstTen, FirstTwenty, NextTwenty} {
		rule, ok := e.Rule(code, day)
		switch {
		case !ok:
		case n.Have >= rule.MinMinutes:
			n.Reached = &code
			if code == NextTwenty {
				n.Reachable = append(n.Reachable, code) // a further unit
			}
		default:
			n.Reachable = append(n.Reachable, code)
		}
	}
}

// setReachableByDays does so for the days of a period, of which each has room for one; where sixteen are out of reach, two may not be.
func (e *Engine) setReachableByDays(n *NearCode, day string) {
	n.Reachable = []string{}
	for _, code := range []string{ShortSupply, DeviceSupply} {
		rule, ok := e.Rule(code, day)
		switch {
		case !ok:
		case n.Have >= rule.MinDays:
			n.Reached = &code
		case n.Have+n.DaysLeft >= rule.MinDays:
			n.Reachable = append(n.Reachable, code)
		}
	}
	if len(n.Reachable) == 1 && n.Reachable[0] == ShortSupply {
		n.CPTCode, n.Needed = ShortSupply, baseRule(ShortSupply).MinDays
	}
}
