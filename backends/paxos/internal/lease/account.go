package lease

import (
	"fmt"
	"slices"
	"time"
)

// Said is what a member has said to an attempt, in words. It is empty if that is nothing.
type Said struct {
	Member MemberID
	What   string
}

// Account returns what each member has said to the last attempt to which any has said
// anything.
func (o *Operation) Account() []Said {
	voices, stage, ballot := o.voices, o.stage, o.ballot
	if !spoken(voices) && o.before.voices != nil {
		voices, stage, ballot = o.before.voices, o.before.stage, o.before.ballot
	}
	all := []Said{}
	for _, v := range voices {
		all = append(all, Said{v.member, v.text(stage, ballot)})
	}
	return all
}

// Note says why the operation itself has gone no further, if it was not for what the
// members said.
func (o *Operation) Note() string {
	if o.phase == resting {
		return o.note
	}
	return o.before.note
}

const (
	noteDiffer  = "what they know differs, as while a write is under way"
	noteRescued = "a write that was interrupted has left a record, which has to expire first"
)

// An attempt is one that failed.
type attempt struct {
	voices []voice
	stage  phase // how far it came
	ballot Ballot
	note   string
}

func spoken(voices []voice) bool {
	return slices.ContainsFunc(voices, func(v voice) bool { return v.promised || v.refused })
}

func (v voice) text(stage phase, b Ballot) string {
	r := v.refusal
	switch {
	case v.accepted:
		return "accepted"
	case v.refused && r.Held:
		return fmt.Sprintf("refused: it keeps another's lease for %v more", max(r.Life.Round(time.Millisecond), time.Millisecond))
	case v.refused && r.Promised > b.Counter:
		return "refused: it has promised a later attempt"
	case v.refused && r.Promised == b.Counter:
		return "refused: it has promised another attempt, or was asked too late"
	case v.refused && !v.promised:
		return fmt.Sprintf("refused: counter %d is too far ahead of its own, %d", b.Counter, r.Promised)
	case v.refused:
		return "refused: it was restarted meanwhile"
	case v.promised && stage == asking && v.report.Accepted == (Ballot{}):
		return "answered that it knows of nothing"
	case v.promised && stage == asking && v.report.Expired:
		return fmt.Sprintf("answered with a record that is over, of attempt %d", v.report.Accepted.Counter)
	case v.promised && stage == asking:
		return fmt.Sprintf("answered with what attempt %d has left", v.report.Accepted.Counter)
	case v.promised && stage == proposing:
		return "promised, and has not said whether it accepts"
	case v.promised:
		return "promised"
	}
	return ""
}
