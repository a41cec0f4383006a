package machine

import "github.com/electkv/election/kv"

// A Canon has equal records be one, so that campaigns can be compared with ==.
type Canon map[kv.Record]Ref

// Of returns the campaign with the records of the canon.
func (n Canon) Of(c Campaign) Campaign {
	if n == nil {
		return c
	}
	refs := []*Ref{&c.Heir, &c.Preference.heir, &c.Preference.mine}
	for _, l := range []*Lock{&c.Lead, &c.Place} {
		refs = append(refs, &l.Remains.Ref, &l.Pending.old, &l.Seen.Ref, &l.Rival, &l.Heir, &l.Line.Ref)
	}
	for _, r := range refs {
		if r.to == nil {
			continue
		}
		if _, known := n[*r.to]; !known {
			n[*r.to] = *r
		}
		*r = n[*r.to]
	}
	return c
}
