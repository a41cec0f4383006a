//go:build linux

package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/test/interop/coexist"
)

// playFleet plays a fleet and demands that both kinds get on: see the package
// documentation. If all that was wrong is that something came too late, it is played again, with
// times twice as long, for a machine that is slow.
func playFleet(t *testing.T, s setup, addr string) {
	t.Helper()
	var wrong, late []string
	for range 3 {
		f := newFleet(t, s, addr)
		wrong, late = f.play()
		if len(wrong)+len(late) == 0 {
			return
		}
		f.tell(wrong, late)
		require.Empty(t, wrong, "the kinds do not get on; again: %s", f.about.Command)
		s = s.slower()
	}
	require.Empty(t, late, "something came too late each time")
}

// play has a fleet troubled, and returns what was wrong and what was only late.
func (f *fleet) play() (wrong, late []string) {
	f.t.Helper()
	f.enter("old-1", "old-2", "new-1", "new-2")
	from := boottime.Now()
	f.direct(*stretch, func() bool { return false })
	f.direct(8**stretch, f.hadTurns) // chance, or a lock-delay, may have favoured one kind
	time.Sleep(f.ttl)
	to := boottime.Now()
	if f.layout == layoutClaim {
		f.empty()
	}
	f.close()
	f.stop()
	f.watches.Wait()

	story := f.story()
	v := story.Judge()
	wrong, late = f.observers(story)
	wrong = slices.Concat(v.Broken, f.failed, f.order(story), wrong)
	late = append(late, f.progress(story, v, from, to)...)
	f.report(story, v, from, to)
	return wrong, late
}

// tell logs what a fleet that did not get on has done.
func (f *fleet) tell(wrong, late []string) {
	f.t.Logf("wrong: %s\nlate: %s\nhistory: %s\n%s", strings.Join(wrong, "\n"), strings.Join(late, "\n"), f.save(), history.Timeline(f.events(), 150))
	for _, r := range f.seen {
		f.t.Logf("ours reported at %v: %+v", r.at, r.leader)
	}
	for _, seen := range f.story().Sightings {
		f.t.Logf("the store showed %s from %v to %v", seen.Owner, seen.FirstSent, seen.LastAnswered)
	}
	for _, a := range f.actors {
		f.t.Logf("%s said:\n%s", a.part.Who, a.said)
	}
}

// empty has the old ones leave, upon which one of ours must lead: a candidate
// that does not stand in line gets in when nobody does.
func (f *fleet) empty() {
	for _, a := range f.actors {
		if coexist.IsOld(a.part.Who) {
			a.tell("close")
		}
	}
	f.await("one of ours leads when the line is empty", f.dead+f.ttl+patience, elected("new", boottime.Now()))
	time.Sleep(f.surely) // that may be the first one that the observers see
}

// order looks at the tokens: those of ours grow from term to term, and where the
// store numbers the records of both kinds, its numbers do, and are the tokens.
func (f *fleet) order(s coexist.Story) []string {
	wrong := coexist.Order(slices.DeleteFunc(slices.Clone(s.Terms), func(t coexist.Term) bool { return t.Old }))
	held, numbers := []coexist.Term{}, map[string]uint64{}
	for _, seen := range s.Sightings {
		held = append(held, coexist.Term{Who: "the holder", Owner: seen.Owner, Token: seen.Token, Begin: seen.FirstSent})
		numbers[seen.Owner] = seen.Token
	}
	wrong = append(wrong, coexist.Order(held)...)
	for _, t := range s.Terms {
		if n := numbers[t.Owner]; n != 0 && t.Token != 0 && n != t.Token {
			wrong = append(wrong, fmt.Sprintf("%s leads under token %d, while the number of its record is %d", t.Who, t.Token, n))
		}
	}
	return wrong
}

// least is how often each kind has to lead.
const least = 2

// hadTurns reports whether each kind has led often enough.
func (f *fleet) hadTurns() bool {
	v := f.story().Judge()
	return v.Old >= least && (v.New >= least || f.layout == layoutClaim)
}

// progress demands that each kind comes, and is not shut out for long.
func (f *fleet) progress(s coexist.Story, v coexist.Verdict, from, to time.Duration) (late []string) {
	kinds := map[bool]int{true: v.Old, false: v.New}
	if f.layout == layoutClaim {
		delete(kinds, false) // it starves while old ones queue, and says so
	}
	for kind, terms := range kinds {
		if terms < least {
			late = append(late, fmt.Sprintf("%s led %d times; at least %d", kindOf(kind), terms, least))
		}
		if longest, since := coexist.Shut(s.Terms, kind, from, to); longest > f.shut() {
			late = append(late, fmt.Sprintf("%s were shut out for %v from %v; at most %v", kindOf(kind), longest, since, f.shut()))
		}
		// Where there is no line, the next one is whoever comes first, and on a busy machine that is
		// more often an old lock, which sends fewer requests: how long a kind is shut out says all
		// there is.
		if row := coexist.Row(s.Sightings, !kind); row > f.luck && f.setup.store == inEtcd {
			late = append(late, fmt.Sprintf("%s held %d times in a row; at most %d", kindOf(!kind), row, f.luck))
		}
	}
	return late
}

func kindOf(old bool) string {
	if old {
		return "old locks"
	}
	return "ours"
}

// observers demands that the observers of both kinds have seen both kinds, as
// they understand them.
func (f *fleet) observers(s coexist.Story) (wrong, late []string) {
	ofOld, ofOurs := 0, 0
	for _, seen := range s.Sightings {
		if !seen.Old {
			ofOurs++
			owner, _, _ := strings.Cut(seen.Owner, "#")
			if text := f.published(seen); text != owner {
				wrong = append(wrong, fmt.Sprintf("an old observer reads %q while %s leads", seen.Value, seen.Owner))
			}
			continue
		}
		ofOld++
		if seen.LastSent-seen.FirstAnswered > f.late() && !f.reported(seen) {
			late = append(late, fmt.Sprintf("the watch of ours did not report %q, which was held from %v to %v", seen.Value, seen.FirstAnswered, seen.LastSent))
		}
	}
	foreign, own, events := 0, 0, f.events().Events
	for _, r := range f.seen {
		switch {
		case r.vacant:
		case r.leader.Foreign:
			foreign++
			known := slices.ContainsFunc(s.Sightings, func(g coexist.Sighting) bool { return g.Old && g.Value == r.leader.Value }) ||
				slices.ContainsFunc(events, func(e history.Event) bool {
					return e.Kind == history.Elected && coexist.IsOld(e.Who) && e.Text == legible(r.leader.Value)
				})
			if !known && !f.brief(r) {
				wrong = append(wrong, fmt.Sprintf("the watch of ours reported %q as foreign, which nobody has published", r.leader.Value))
			}
		default:
			own++
			if !strings.HasPrefix(r.leader.ID, "new-") || !strings.HasPrefix(r.leader.Value, r.leader.ID+".") {
				wrong = append(wrong, fmt.Sprintf("the watch of ours reported %q with value %q", r.leader.ID, r.leader.Value))
			}
		}
	}
	for observer, values := range f.told {
		w, l := f.readable(observer, values)
		wrong, late = append(wrong, w...), append(late, l...)
	}
	if min(ofOld, ofOurs, foreign, own) == 0 {
		late = append(late, fmt.Sprintf("old observers saw %d of the old, %d of ours; ours saw %d foreign, %d own: none may be missing", ofOld, ofOurs, foreign, own))
	}
	return wrong, late
}

// readable demands that an old observer has heard of leaders of ours, and of old
// ones that publish something.
func (f *fleet) readable(observer string, values []string) (wrong, late []string) {
	old, new := f.lock == "concurrency.Mutex" || f.lock == "etcdctl lock", false
	for _, value := range values {
		switch owner, isOld := whose(value); {
		case strings.HasPrefix(owner, "old-"):
			old = true
		case isOld && owner != "":
			wrong = append(wrong, fmt.Sprintf("%s says that %q leads", observer, value))
		case !isOld:
			new = new || f.published(coexist.Sighting{Value: value}) == owner
		}
	}
	if !old || !new {
		late = append(late, fmt.Sprintf("%s has not heard of both kinds: %q", observer, values))
	}
	return wrong, late
}

// published is whose value an old observer reads, while ours leads.
func (f *fleet) published(seen coexist.Sighting) string {
	value := seen.Value
	if !f.plain {
		value = kv.Decode(value).Value
	}
	owner, _, _ := strings.Cut(value, "/")
	return owner
}

// reported tells whether the watch of ours told of a holder while it was there,
// or not long after.
func (f *fleet) reported(seen coexist.Sighting) bool {
	return slices.ContainsFunc(f.seen, func(r report) bool {
		return r.leader.Foreign && r.leader.Value == seen.Value && r.leader.Token == seen.Token &&
			seen.FirstSent-f.late() <= r.at && r.at <= seen.LastAnswered+f.late()
	})
}

// late is how late a watch of this process may be: what a starved process has slept through comes
// on top.
func (f *fleet) late() time.Duration { return f.surely + f.sampler.pause }

// brief tells whether a report is of somebody who may have come and gone between
// two looks, before it was told of: its process was killed on the way.
func (f *fleet) brief(r report) bool { return strings.HasPrefix(r.leader.Value, "old-") }

// report logs what the fleet has shown.
func (f *fleet) report(s coexist.Story, v coexist.Verdict, from, to time.Duration) {
	shutOld, _ := coexist.Shut(s.Terms, true, from, to)
	shutNew, _ := coexist.Shut(s.Terms, false, from, to)
	f.t.Logf("%d terms of the old lock, %d of ours, at most %d and %d in a row of %d; %d looks, at most %v apart; shut out at most %v and %v of %v; %d beliefs of old locks beyond their right, %d overlaps after a DEL; %d of ours deleted, noticed within %v",
		v.Old, v.New, coexist.Row(s.Sightings, true), coexist.Row(s.Sightings, false), f.luck,
		f.sampler.looks, f.sampler.pause.Round(time.Millisecond), shutOld.Round(time.Millisecond), shutNew.Round(time.Millisecond), f.shut(), len(v.Flaws), len(v.Excused), v.Erased, v.Slowest.Round(time.Millisecond))
	for _, flaw := range v.Flaws {
		f.t.Logf("flaw of the old lock: %s believed beyond its right for %v beside %s", flaw.Who, flaw.Lasted.Round(time.Millisecond), flaw.Other)
	}
	for _, text := range v.Excused {
		f.t.Log("after a bare DEL: " + text)
	}
}
