package otel_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	apitrace "go.opentelemetry.io/otel/trace"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv/kvfault"
)

func TestATermIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, contact := newStage(t, nil), func() float64 { return float64(time.Now().UnixMilli()) / 1000 }
		require.Empty(t, s.metrics(), "no candidate, no figures")
		c := s.candidate(memkv.New(), "billing", "a")
		var token float64
		require.NoError(t, c.Run(t.Context(), func(_ context.Context, term *election.Term) error {
			synctest.Wait()
			token = float64(term.Token())
			leading := s.metrics()
			require.InDelta(t, ttl.Seconds()*9/10, leading["election.trust.remaining[s]{election.name=billing}"], 1)
			delete(leading, "election.trust.remaining[s]{election.name=billing}")
			require.Equal(t, map[string]float64{
				"election.is_leader[{candidate}]{election.name=billing}":                    1,
				"election.role[{candidate}]{election.name=billing,election.role=idle}":      0,
				"election.role[{candidate}]{election.name=billing,election.role=candidate}": 0,
				"election.role[{candidate}]{election.name=billing,election.role=heir}":      0,
				"election.role[{candidate}]{election.name=billing,election.role=leader}":    1,
				"election.token[{token}]{election.name=billing}":                            token,
				"election.store.contact.timestamp[s]{election.name=billing}":                contact(),
				"election.terms[{term}]{election.name=billing}":                             1,
				"election.campaign.duration.count{election.name=billing}":                   1,
				"election.campaign.duration.sum[s]{election.name=billing}":                  0,
			}, leading)
			time.Sleep(ttl)
			return nil
		}))
		ended := s.metrics()
		require.InDelta(t, 3*6, ended["election.refresh.margin.sum[s]{election.name=billing}"], 1)
		delete(ended, "election.refresh.margin.sum[s]{election.name=billing}")
		require.Equal(t, map[string]float64{
			"election.is_leader[{candidate}]{election.name=billing}":                       0,
			"election.role[{candidate}]{election.name=billing,election.role=idle}":         1,
			"election.role[{candidate}]{election.name=billing,election.role=candidate}":    0,
			"election.role[{candidate}]{election.name=billing,election.role=heir}":         0,
			"election.role[{candidate}]{election.name=billing,election.role=leader}":       0,
			"election.store.contact.timestamp[s]{election.name=billing}":                   contact(),
			"election.terms[{term}]{election.name=billing}":                                1,
			"election.terms_ended[{term}]{election.name=billing,election.reason=finished}": 1,
			"election.campaign.duration.count{election.name=billing}":                      1,
			"election.campaign.duration.sum[s]{election.name=billing}":                     0,
			"election.drain.duration.count{election.name=billing}":                         1,
			"election.drain.duration.sum[s]{election.name=billing}":                        0,
			"election.term.duration.count{election.name=billing}":                          1,
			"election.term.duration.sum[s]{election.name=billing}":                         ttl.Seconds(),
			"election.refresh.duration.count{election.name=billing,election.outcome=ok}":   3,
			"election.refresh.duration.sum[s]{election.name=billing,election.outcome=ok}":  0,
			"election.refresh.margin.count{election.name=billing}":                         3,
		}, ended)
	})
}

func TestNoSpanLastsAsLongAsATermAndLateHooksChangeNoTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, faults := newStage(t, nil), kvfault.Wrap(memkv.New())
		faults.On(kvfault.Create).DelayReplies(time.Second)
		faults.On(kvfault.Delete).DelayReplies(2 * time.Second)
		ctx, done := s.caller("main")
		late := &election.Hooks{
			CampaignStart: func(context.Context, election.CampaignStartInfo) { time.Sleep(time.Second / 2) },
			CampaignDone:  func(context.Context, election.CampaignDoneInfo) { time.Sleep(time.Second / 2) },
			TermDone:      func(context.Context, election.TermDoneInfo) { time.Sleep(time.Second / 2) },
			ReleaseDone:   func(context.Context, election.ReleaseDoneInfo) { time.Sleep(time.Second / 2) },
		}
		c := s.candidate(faults.Store, "billing", "a", func(o *election.Options) { o.Hooks = election.JoinHooks(late, o.Hooks) })
		require.NoError(t, c.Run(ctx, func(context.Context, *election.Term) error {
			time.Sleep(ttl)
			return nil
		}))
		done()
		require.ElementsMatch(t, []string{
			"main",
			"election.campaign in main",
			"election.store.create in election.campaign",
			"election.store.refresh linked to election.campaign",
			"election.store.refresh linked to election.campaign",
			"election.store.refresh linked to election.campaign",
			"election.release linked to election.campaign",
			"election.store.delete in election.release",
		}, s.outline())
		took := make(map[string]time.Duration)
		for _, span := range s.drawn() {
			took[span.Name] = span.EndTime.Sub(span.StartTime)
		}
		require.Equal(t, map[string]time.Duration{
			"main":                   ttl + 3*time.Second + time.Second/2,
			"election.campaign":      time.Second,
			"election.store.create":  time.Second,
			"election.store.refresh": 0,
			"election.release":       2 * time.Second,
			"election.store.delete":  2 * time.Second,
		}, took)
		release := s.one("election.release", "a")
		require.Equal(t, time.Second+ttl, release.StartTime.Sub(s.one("election.campaign", "a").StartTime), "from the term's end")
		require.Equal(t, map[string]string{
			"election.name": "billing", "election.candidate.id": "a", "election.token": "1", "election.reason": "finished",
			"election.release": "freed", "election.drain.duration": "0",
		}, attributesOf(release))
		require.Equal(t, map[string]string{
			"election.name": "billing", "election.candidate.id": "a", "election.outcome": "ok", "election.token": "1",
		}, attributesOf(s.one("election.campaign", "a")))
		create := s.one("election.store.create", "a")
		require.Equal(t, apitrace.SpanKindClient, create.SpanKind)
		require.Equal(t, map[string]string{
			"election.name": "billing", "election.candidate.id": "a", "election.outcome": "ok",
			"election.store.operation": "create", "election.store.safe": "leader",
		}, attributesOf(create))
	})
}

func TestAHandOverIsDrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newStage(t, nil), memkv.New()
		stop := s.run(t.Context(), s.candidate(store, "billing", "a", firstCome))
		time.Sleep(ttl)
		b := s.candidate(store, "billing", "b", firstCome)
		s.run(t.Context(), b)
		time.Sleep(5 * ttl)
		require.InDelta(t, 1, s.metrics()["election.role[{candidate}]{election.name=billing,election.role=heir}"], 0, "both are counted")
		require.InDelta(t, 1, s.metrics()["election.is_leader[{candidate}]{election.name=billing}"], 0)
		stop()
		synctest.Wait()
		handOver := s.one("election.hand_over", "a")
		require.Equal(t, map[string]string{
			"election.name": "billing", "election.candidate.id": "a", "election.token": "1", "election.reason": "stopped",
			"election.release": "handed_over", "election.drain.duration": "0",
			"election.heir.id": "b", "election.heir.token": attributesOf(s.one("election.campaign", "b"))["election.token"],
		}, attributesOf(handOver))
		require.Contains(t, s.outline(), "election.hand_over linked to election.campaign")
		require.Contains(t, s.outline(), "election.store.hand_over in election.hand_over")
		require.Equal(t, s.one("election.campaign", "a").SpanContext.SpanID(), handOver.Links[0].SpanContext.SpanID())
		var ofHeir int
		for _, refresh := range s.named("election.store.refresh") {
			require.False(t, refresh.Parent.IsValid(), "an heir may wait for weeks")
			if attributesOf(refresh)["election.store.safe"] == "heir" {
				require.Equal(t, s.one("election.campaign", "b").SpanContext.SpanID(), refresh.Links[0].SpanContext.SpanID())
				ofHeir++
			}
		}
		require.Greater(t, ofHeir, 5)
	})
}

func TestAnOutageOfTheStoreIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, faults := newStage(t, nil), kvfault.Wrap(memkv.New())
		s.drain = 2 * time.Second
		s.run(t.Context(), s.candidate(faults.Store, "billing", "a"))
		synctest.Wait()
		contact := s.metrics()["election.store.contact.timestamp[s]{election.name=billing}"]
		faults.On().DropRequests()
		time.Sleep(ttl*9/10 - time.Millisecond)
		trust := s.metrics()
		require.InDelta(t, 1, trust["election.is_leader[{candidate}]{election.name=billing}"], 0)
		require.InDelta(t, 0.001, trust["election.trust.remaining[s]{election.name=billing}"], 0.0001)
		require.InDelta(t, contact, trust["election.store.contact.timestamp[s]{election.name=billing}"], 0)
		time.Sleep(time.Millisecond)
		trust = s.metrics() // whatever the hooks were told by now
		require.InDelta(t, 0, trust["election.is_leader[{candidate}]{election.name=billing}"], 0)
		require.NotContains(t, trust, "election.trust.remaining[s]{election.name=billing}")
		require.NotContains(t, trust, "election.token[{token}]{election.name=billing}")
		time.Sleep(ttl)
		faults.Heal()
		time.Sleep(ttl)
		synctest.Wait()
		after := s.metrics()
		require.InDelta(t, 1, after["election.terms_ended[{term}]{election.name=billing,election.reason=expired}"], 0)
		require.InDelta(t, 2, after["election.terms[{term}]{election.name=billing}"], 0)
		require.GreaterOrEqual(t, after["election.refresh.duration.count{election.name=billing,election.outcome=unclear}"], 1.0)
		require.InDelta(t, after["election.refresh.duration.count{election.name=billing,election.outcome=ok}"],
			after["election.refresh.margin.count{election.name=billing}"], 0)
		require.InDelta(t, 2, after["election.drain.duration.sum[s]{election.name=billing}"], 0)
		var failed float64
		for _, refresh := range s.named("election.store.refresh") {
			if refresh.Status.Code == codes.Error {
				failed++
				require.Equal(t, "timeout", attributesOf(refresh)["error.type"])
				require.Positive(t, refresh.EndTime.Sub(refresh.StartTime))
			}
		}
		require.GreaterOrEqual(t, failed, 1.0)
		require.InDelta(t, failed, after["election.store.errors[{error}]{election.name=billing,election.store.operation=refresh}"], 0)
		release := s.one("election.release", "a")
		require.Equal(t, codes.Error, release.Status.Code)
		require.Equal(t, "election: leadership lost: not refreshed in time", release.Status.Description)
		require.Equal(t, "expired", attributesOf(release)["error.type"])
		require.Equal(t, "2", attributesOf(release)["election.drain.duration"])
		require.Greater(t, release.EndTime.Sub(release.StartTime), s.drain)
	})
}

func TestARefreshThatIsAnsweredTooLateLeavesNoMargin(t *testing.T) {
	s := newStage(t, nil)
	s.telemetry.Hooks().RefreshDone(t.Context(), election.RefreshDoneInfo{
		HookInfo: election.HookInfo{Candidate: s.candidate(memkv.New(), "billing", "a")},
		Outcome:  election.OutcomeOK,
		Left:     -time.Second,
	})
	require.InDelta(t, 1, s.metrics()["election.refresh.margin.count{election.name=billing}"], 0)
	require.InDelta(t, 0, s.metrics()["election.refresh.margin.sum[s]{election.name=billing}"], 0, "a sum that fell would break rates")
}

func TestElectionsOfAGroupAreAddedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newStage(t, func(name string) string { return name[:4] }), memkv.New()
		for _, name := range []string{"job-1", "job-2", "lone"} {
			s.run(t.Context(), s.candidate(store, name, name))
		}
		synctest.Wait()
		s.run(t.Context(), s.candidate(store, "job-1", "second"))
		time.Sleep(ttl / 5)
		s.run(t.Context(), s.candidate(store, "job-3", "job-3"))
		synctest.Wait()
		got := s.metrics()
		require.InDelta(t, ttl.Seconds()*7/10, got["election.trust.remaining[s]{election.name=job-}"], 0.2, "of the leader that has least")
		require.Contains(t, got, "election.token[{token}]{election.name=lone}")
		for line := range got {
			if !strings.Contains(line, "=job-") {
				delete(got, line)
			}
		}
		delete(got, "election.trust.remaining[s]{election.name=job-}")
		require.Equal(t, map[string]float64{
			"election.is_leader[{candidate}]{election.name=job-}":                    3,
			"election.role[{candidate}]{election.name=job-,election.role=idle}":      0,
			"election.role[{candidate}]{election.name=job-,election.role=candidate}": 1,
			"election.role[{candidate}]{election.name=job-,election.role=heir}":      0,
			"election.role[{candidate}]{election.name=job-,election.role=leader}":    3,
			"election.store.contact.timestamp[s]{election.name=job-}":                float64(time.Now().UnixMilli()) / 1000,
			"election.terms[{term}]{election.name=job-}":                             3,
			"election.campaign.duration.count{election.name=job-}":                   3,
			"election.campaign.duration.sum[s]{election.name=job-}":                  0,
		}, got, "tokens of two elections cannot be compared")
		require.Equal(t, "job-3", attributesOf(s.one("election.campaign", "job-3"))["election.name"], "spans have names all the same")
	})
}

func TestCallsThatWereDroppedAreCounted(t *testing.T) {
	s := newStage(t, nil)
	s.telemetry.Hooks().Dropped(t.Context(), election.DroppedInfo{Calls: 12})
	require.Equal(t, map[string]float64{"election.hook.calls_dropped[{call}]{}": 12}, s.metrics())
}

func TestWaitingInLineForLongIsDrawnApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newStage(t, nil), memkv.NewQueue()
		inLine := func(o *election.Options) { o.NoHeir = false }
		s.run(t.Context(), s.candidate(store, "billing", "a", inLine))
		synctest.Wait()
		s.run(t.Context(), s.candidate(store, "billing", "b", inLine))
		time.Sleep(10 * ttl)
		synctest.Wait()
		for _, stay := range s.named("election.store.stay") {
			require.False(t, stay.Parent.IsValid())
			require.Len(t, stay.Links, 1)
		}
	})
}

func TestACampaignThatIsGivenUpHasNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newStage(t, nil), memkv.New()
		s.run(t.Context(), s.candidate(store, "billing", "a"))
		synctest.Wait()
		stop := s.run(t.Context(), s.candidate(store, "billing", "b"))
		time.Sleep(time.Hour)
		stop()
		_, err := s.candidate(store, "billing", "c").TryCampaign(t.Context())
		require.ErrorIs(t, err, election.ErrHeld)
		broken := kvfault.Wrap(store)
		broken.On(kvfault.Create).DropRequests()
		_, err = s.candidate(broken.Store, "other", "d").TryCampaign(t.Context())
		require.Error(t, err)
		for id, want := range map[string]string{"b": "cancelled", "c": "refused", "d": ""} {
			campaign := s.one("election.campaign", id)
			require.Equal(t, want, attributesOf(campaign)["election.outcome"], id)
			require.Equal(t, want == "", campaign.Status.Code == codes.Error, id)
		}
		require.Equal(t, "timeout", attributesOf(s.one("election.campaign", "d"))["error.type"])
		require.Equal(t, time.Hour, s.one("election.campaign", "b").EndTime.Sub(s.one("election.campaign", "b").StartTime))
	})
}

func TestARequestOfACallIsPartOfTheCallersTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newStage(t, nil), memkv.New()
		main, done := s.caller("main")
		term, err := s.candidate(store, "billing", "a", firstCome).Campaign(main)
		require.NoError(t, err)
		s.run(t.Context(), s.candidate(store, "billing", "b", firstCome))
		time.Sleep(ttl)
		done()
		handler, done := s.caller("handler")
		require.NoError(t, term.Transfer(handler, "b"))
		done()
		require.Contains(t, s.outline(), "election.store.displace in handler")
		require.Contains(t, s.outline(), "election.store.hand_over in election.hand_over")
	})
}

func TestWhatHelpsATermForLongHasATraceOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newStage(t, nil), memkv.New()
		main, done := s.caller("main")
		defer done()
		s.run(main, s.candidate(store, "billing", "a", firstCome))
		synctest.Wait()
		s.run(t.Context(), s.candidate(store, "billing", "b", firstCome))
		time.Sleep(ttl)
		require.NoError(t, election.RequestTransfer(t.Context(), store, "billing", "b"))
		synctest.Wait()
		require.Contains(t, s.outline(), "election.store.publish linked to election.campaign")
		require.NotContains(t, s.outline(), "election.store.publish in main")
	})
}

func TestNoSpanIsDrawnOfWhatIsNotSampled(t *testing.T) {
	for name, opts := range map[string][]trace.TracerProviderOption{
		"no trace":           {trace.WithSampler(trace.NeverSample())},
		"the caller's trace": {trace.WithSampler(trace.ParentBased(trace.AlwaysSample()))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, nil, opts...)
				ctx := apitrace.ContextWithSpanContext(t.Context(), apitrace.NewSpanContext(apitrace.SpanContextConfig{
					TraceID: apitrace.TraceID{1}, SpanID: apitrace.SpanID{1},
				}))
				require.NoError(t, s.candidate(memkv.New(), "billing", "a").Run(ctx, func(context.Context, *election.Term) error {
					time.Sleep(ttl)
					return nil
				}))
				for _, span := range s.drawn() {
					require.Contains(t, []string{"election.store.refresh", "election.release", "election.store.delete"}, span.Name, "a trace of its own")
					require.Empty(t, span.Links, "nothing to link to")
					require.NotEqual(t, "no trace", name)
				}
				require.InDelta(t, 1, s.metrics()["election.terms[{term}]{election.name=billing}"], 0)
			})
		})
	}
}
