package kvtest

import (
	"fmt"
	"time"
)

const manySafes = "Any number of goroutines may use a Store at once, and any number of safes share its client, its leases and its connections."

var watchCrowdCases = []Case{
	{Name: "two watches see the same", Clause: yieldsEach, check: twoWatchesSeeTheSame},
	{Name: "many watches of one safe see the same", Clause: manySafes + " " + yieldsEach, check: manyWatchesOfOneSafeSeeTheSame},
	{Name: "many safes are watched at once", Clause: manySafes, check: manySafesAreWatchedAtOnce, long: true},
	{Name: "a watch that ends does not end another", Clause: watchEnds, check: watched(aWatchThatEndsDoesNotEndAnother)},
}

func twoWatchesSeeTheSame(t *trial) {
	name := t.name()
	one, two := t.watch(t.open(), name), t.watch(t.open(), name)
	one.seesVacancy()
	two.seesVacancy()
	rec := t.create(t.s, name, t.signed("v"))
	one.sees(rec)
	two.sees(rec)
	start := time.Now()
	rec = t.swap(t.s, name, rec, t.mortal("the next")) // it may come and go between two looks
	t.fades(name, rec, start, nil)
	one.seesVacancy()
	two.seesVacancy()
}

func manyWatchesOfOneSafeSeeTheSame(t *trial) {
	name, rec := t.held()
	var crowd []*watcher
	for range 50 {
		crowd = append(crowd, t.watch(t.s, name))
	}
	t.allSee(crowd, func(w *watcher) { w.sees(rec) })
	rec = t.publish(t.s, name, rec, "changed")
	t.allSee(crowd, func(w *watcher) { w.sees(rec) })
	t.delete(t.s, name, rec)
	t.allSee(crowd, func(w *watcher) { w.seesVacancy() })
}

func (t *trial) allSee(crowd []*watcher, see func(*watcher)) {
	t.Helper()
	for _, w := range crowd {
		see(w)
	}
}

func manySafesAreWatchedAtOnce(t *trial) {
	crowd := make([]*watcher, 50)
	for i := range crowd {
		crowd[i] = t.watch(t.s, t.name())
	}
	t.allSee(crowd, func(w *watcher) { w.seesVacancy() })
	for i, w := range crowd {
		rec := t.create(t.s, w.name, t.signed(fmt.Sprintf("safe %d", i)))
		defer w.seesVacancy()
		defer func() { t.delete(t.s, w.name, rec) }()
		defer w.sees(rec)
	}
}

func aWatchThatEndsDoesNotEndAnother(t *trial, watch view) {
	name, rec := t.held()
	one, two, three := watch(t, t.s, name), watch(t, t.s, name), watch(t, t.s, t.name())
	one.sees(rec)
	two.sees(rec)
	three.seesVacancy()
	one.end()
	rec = t.publish(t.s, name, rec, "changed")
	two.sees(rec)
	three.sees(t.create(t.s, three.name, t.signed("v")))
}
