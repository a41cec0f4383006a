package election_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
)

// Run campaigns, calls the function while it leads, and resigns when that
// returns.
func ExampleCandidate_Run() {
	store := memkv.New()
	candidate, err := election.New(store, "billing", &election.Options{ID: "web-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = candidate.Run(context.Background(), func(ctx context.Context, term *election.Term) error {
		leader, err := election.Current(ctx, store, "billing")
		fmt.Println(leader.ID, "leads:", leader.Token == term.Token())
		return err
	})
	fmt.Println("work done:", err)

	_, err = election.Current(context.Background(), store, "billing")
	fmt.Println(err)
	// Output:
	// web-1 leads: true
	// work done: <nil>
	// election: nobody leads
}

// When Run's context ends, the function is told to stop, and the safe is freed
// when it has.
func ExampleCandidate_Run_shutdown() {
	candidate, err := election.New(memkv.New(), "billing", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancelCause(context.Background())
	err = candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
		stop(errors.New("SIGTERM"))
		<-ctx.Done()
		fmt.Println("stopping because of", context.Cause(ctx), "while the lease is kept:", term.Err() == nil)
		return nil
	})
	fmt.Println(err)
	// Output:
	// stopping because of SIGTERM while the lease is kept: true
	// SIGTERM
}

// Campaign is for programs that want the term in hand.
func ExampleCandidate_Campaign() {
	store := memkv.New()
	candidate, err := election.New(store, "billing", &election.Options{ID: "web-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	term, err := candidate.Campaign(ctx) // ctx bounds the campaign, not the term
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := term.Proclaim(ctx, "10.0.0.1:8080"); err != nil {
		fmt.Println(err)
	}
	leader, err := election.Current(ctx, store, "billing")
	fmt.Println(leader.ID, leader.Value, err)

	fmt.Println(term.Resign(ctx)) // when the work has stopped
	fmt.Println(term.Err())
	// Output:
	// web-1 10.0.0.1:8080 <nil>
	// <nil>
	// election: resigned
}

// Notify is for programs that start and stop their work from two places.
func ExampleCandidate_Notify() {
	candidate, err := election.New(memkv.New(), "billing", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancelCause(context.Background())
	err = candidate.Notify(ctx, election.Callbacks{
		OnElected: func(_ context.Context, _ *election.Term) {
			fmt.Println("start")
			stop(errors.New("SIGTERM"))
		},
		OnDefeated: func(cause error) { fmt.Println("stop:", cause) },
	})
	fmt.Println(err)
	// Output:
	// start
	// stop: SIGTERM
	// SIGTERM
}

// Watch yields the present leader and then each change; while nobody leads it
// yields ErrNoLeader and goes on.
func ExampleWatch() {
	store := memkv.New()
	candidate, err := election.New(store, "billing", &election.Options{ID: "web-1", Value: "10.0.0.1:8080"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for leader, err := range election.Watch(ctx, store, "billing") {
		if errors.Is(err, election.ErrNoLeader) {
			fmt.Println("nobody leads")
			if _, err := candidate.Campaign(ctx); err != nil {
				fmt.Println(err)
			}
			continue
		}
		if err != nil {
			fmt.Println(err) // the end; watch anew
			break
		}
		fmt.Println(leader.ID, "at", leader.Value)
		break
	}
	// Output:
	// nobody leads
	// web-1 at 10.0.0.1:8080
}

// TryCampaign makes one attempt and does not wait.
func ExampleCandidate_TryCampaign() {
	store, ctx := memkv.New(), context.Background()
	for _, id := range []string{"web-1", "web-2"} {
		candidate, err := election.New(store, "billing", &election.Options{ID: id})
		if err != nil {
			fmt.Println(err)
			return
		}
		term, err := candidate.TryCampaign(ctx)
		if errors.Is(err, election.ErrHeld) {
			fmt.Println(id, "leaves it to somebody else")
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(id, "leads")
		defer term.Resign(ctx)
	}
	// Output:
	// web-1 leads
	// web-2 leaves it to somebody else
}

// By rank the higher candidate is heir, and leads as soon as the leader makes room.
func ExampleByRank() {
	store, ctx := memkv.New(), context.Background()
	leads, isHeir := make(chan struct{}), make(chan struct{}, 1)
	stand := func(id string, rank int, work func(context.Context, *election.Term) error) error {
		candidate, err := election.New(store, "billing", &election.Options{
			ID: id, Rank: rank, Succession: election.ByRank,
			OnRole: func(role election.Role) {
				if id == "large" && role == election.RoleHeir {
					isHeir <- struct{}{}
				}
			},
		})
		if err != nil {
			return err
		}
		return candidate.Run(ctx, work)
	}

	small := make(chan error)
	go func() {
		small <- stand("small", 1, func(context.Context, *election.Term) error {
			fmt.Println("small leads")
			close(leads)
			<-isHeir
			return nil // its work is done: it hands over
		})
	}()
	<-leads
	err := stand("large", 2, func(ctx context.Context, _ *election.Term) error {
		leader, err := election.Current(ctx, store, "billing")
		fmt.Println(leader.ID, "leads, with rank", leader.Rank)
		return err
	})
	fmt.Println(err, <-small)
	// Output:
	// small leads
	// large leads, with rank 2
	// <nil> <nil>
}

// Transfer hands over to one candidate; Run campaigns again afterwards.
func ExampleTerm_Transfer() {
	store := memkv.New()
	ctx, stop := context.WithCancel(context.Background())
	stand := func(id string, work func(context.Context, *election.Term) error) error {
		candidate, err := election.New(store, "billing", &election.Options{
			ID: id, Succession: election.FirstCome,
		})
		if err != nil {
			return err
		}
		return candidate.Run(ctx, work)
	}

	leads, first := make(chan struct{}), make(chan error)
	go func() {
		first <- stand("web-1", func(ctx context.Context, term *election.Term) error {
			close(leads)
			if err := term.Transfer(ctx, "web-2"); err != nil {
				return err // ErrNoHeir: web-2 does not stand, and the term goes on
			}
			<-ctx.Done() // stop the work: until it has, nobody else leads
			fmt.Println("web-1:", context.Cause(ctx))
			return nil
		})
	}()
	<-leads
	_ = stand("web-2", func(context.Context, *election.Term) error {
		fmt.Println("web-2 leads")
		stop()
		return nil
	})
	<-first
	// Output:
	// web-1: election: resigned: hands over to "web-2"
	// web-2 leads
}

// RequestTransfer asks the leader, from anywhere, to hand over to another candidate.
func ExampleRequestTransfer() {
	store := memkv.New()
	ctx, stop := context.WithCancel(context.Background())
	stand := func(id string, elected chan<- string) error {
		candidate, err := election.New(store, "billing", &election.Options{ID: id, Succession: election.FirstCome})
		if err != nil {
			return err
		}
		return candidate.Run(ctx, func(ctx context.Context, _ *election.Term) error {
			elected <- id
			<-ctx.Done()
			return nil
		})
	}

	elected, ended := make(chan string, 2), make(chan error, 2)
	go func() { ended <- stand("web-1", elected) }()
	fmt.Println(<-elected, "leads")
	go func() { ended <- stand("web-2", elected) }()
	if err := election.RequestTransfer(ctx, store, "billing", "web-2"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(<-elected, "leads")
	stop()
	<-ended
	<-ended
	// Output:
	// web-1 leads
	// web-2 leads
}

// Members lists the candidates that keep a record in the roster.
func ExampleMembers() {
	store := memkv.New()
	ctx, stop := context.WithCancel(context.Background())
	stand := func(id string) error {
		candidate, err := election.New(store, "billing", &election.Options{ID: id, Roster: true})
		if err != nil {
			return err
		}
		return candidate.Run(ctx, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			return nil
		})
	}

	ended := make(chan error, 2)
	go func() { ended <- stand("web-1") }()
	for members, err := range election.WatchMembers(ctx, store, "billing") {
		if err != nil {
			break
		}
		if len(members) == 1 && members[0].Role == election.RoleLeader {
			fmt.Println(members[0].ID, members[0].Role)
			go func() { ended <- stand("web-2") }()
		}
		if len(members) == 2 && members[1].Role == election.RoleHeir {
			fmt.Println(members[1].ID, members[1].Role)
			break
		}
	}
	stop()
	<-ended
	<-ended
	// Output:
	// web-1 leader
	// web-2 heir
}
