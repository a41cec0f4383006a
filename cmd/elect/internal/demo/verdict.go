// Package demo plays an election of three processes, of which one is killed and
// one put to sleep, and has their records judged (packages history and oracle).
package demo

import (
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// Judge checks what happened in the play against the promises that it is there
// to show. All of them must be kept: a play that shows nothing proves nothing.
func Judge(h history.History) oracle.Findings {
	return oracle.Judge(h,
		oracle.OneLeader, oracle.TokensGrow, oracle.WorkWithinTerm,
		oracle.SleepersNotice, oracle.LeaderInTime)
}
