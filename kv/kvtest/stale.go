package kvtest

import "github.com/stretchr/testify/require"

var staleCases = []Case{
	{
		Name:   "a vacant safe refuses swap, refresh and delete",
		Clause: "Swap, Refresh and Delete return ErrStale if the safe does not hold the record, or nothing.",
		check:  aVacantSafeRefusesSwapRefreshAndDelete,
	},
	{
		Name:   "a refresh of what the safe does not hold is refused",
		Clause: refreshProves,
		check:  aRefreshOfWhatTheSafeDoesNotHoldIsRefused,
	},
}

func aVacantSafeRefusesSwapRefreshAndDelete(t *trial) {
	elsewhere, rec := t.held()
	never, deleted := t.name(), t.name()
	t.delete(t.s, deleted, t.create(t.s, deleted, t.signed("v")))
	for _, name := range []string{never, deleted} {
		t.disowned(t.s, name, rec)
		t.vacant(name)
	}
	t.holds(elsewhere, rec)
	t.refresh(t.s, elsewhere, rec)
}

func aRefreshOfWhatTheSafeDoesNotHoldIsRefused(t *trial) {
	name, rec := t.held()
	token := rec
	token.Token++
	t.disowned(t.s, name, token)
	signature := rec
	signature.Signature = t.signed("").Signature
	t.disowned(t.s, name, signature)
	t.holds(name, rec)
	require.True(t, t.refresh(t.s, name, rec).Owns(rec))
}
