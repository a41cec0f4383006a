// Package invitation decides which group a process is in. It is the invitation algorithm
// (Garcia-Molina, "Elections in a Distributed Computing System", IEEE Transactions on Computers
// C-31(1), 1982), for work that must go on in each part of a network that is broken. Two groups
// lead side by side whenever the network is partitioned: what must have one leader belongs in an election.
//
// It is pure. [Step] takes a process, a moment and an event, and returns the process after
// it and what is to be done; there is no clock, no transport, no goroutine and no log in here. A
// runtime sends the messages, begins work and calls it off, and calls Step again when
// [Node.Due] says so. Record 59 among the decisions in docs/adr has the argument.
//
// # Groups
//
// A group has a [Number], which names its leader and is never used again, and members. All
// that have entered a number agree on the members. A process is in one group at a time, enters
// each number once, and enters the next when its work for the last one has returned.
//
// # A merge
//
//	leader                      another leader, its members      its own members
//	probe ───────────────────▶ which group are you in?
//	      ◀─────────────────── answer: mine, of these
//	invite ──────────────────▶ all of them
//	      ◀─────────────────── accept                            nobody has stopped anything
//	join ────────────────────▶ work is called off ◀───────────── join
//	      ◀─────────────────── ready, when it has returned ────▶
//	heartbeat, with the list ▶ formed: work begins ◀──────────── heartbeat, with the list
//	      ◀─────────────────── alive ──────────────────────────▶
//
// The leader of the larger group invites, or if they are as large that with the smaller ID. The
// other defers to it. A group is merged if all its members have accepted; of those that are told to
// join, the ones that are ready within Drain are in the list.
//
// # States and events
//
// The leader of a group is in a round, or in none: it looks, invites, or has its group joined by others.
// "–" means that nothing comes of it.
//
//	event            leads, no round     looks             invites            joining: has left     member             left its group,
//	                                                                          its own group                            waits for another
//	probe            answer; look soon   answer            answer             answer: the new one   answer: its        answer: the new one
//	                 if it is worse                                                                 leader's
//	answer           –                   note; choose      –                  –                     –                  –
//	                                     when all are in
//	invite, and its  accept, if better   accept, if        accept, if         –                     accept             –
//	group is meant   and none is held    better; rest      better; rest
//	accept           –                   –                 note; gather       –                     –                  –
//	                                                       when all are in
//	join, and its    leave; wait         leave; wait       leave; wait        –                     leave; wait        –
//	group is meant
//	ready            tell the list       tell the list     tell the list      note; form when       –                  –
//	                                                                          all are in
//	heartbeat        –                   –                 –                  –                     alive              enter, or anew if
//	                                                                                                                   it is left out
//	gone             lose the member     lose              lose               expect it no more     of the leader:     of the leader: anew
//	                                                                                                anew
//	work returned    –                   –                 –                  form when all are in  –                  ready
//	heartbeat due    heartbeat; lose     heartbeat; lose   heartbeat; lose    join again            missed: anew       missed: anew
//	                 who is silent       who is silent     who is silent                            after Misses       after Misses
//	its time is      look, if there is   choose            gather             form; or anew if its  –                  –
//	over             anybody outside,                                         own work goes on
//	                 or one is lost
//
//	choose   a better leader has answered: rest, so that it can invite; else invite the others
//	gather   some groups have accepted, or a member is lost: leave, and tell all to join; else rest
//	form     those that are ready are the members: enter, and tell them
//	anew     leave; when no work goes on, form a group of one and look at once
//	rest     no round for Look, and half of it more at most
//
// A process whose work goes on after all that is in no group, answers probes with that, and waits for
// the work to return. What is about another group than its own is not in the table: Gone is the answer to a heartbeat
// and a join that come too late, or to a former start.
//
// # Cost
//
// In a group of n that has all processes: 2·(n−1) messages per Heartbeat. Where some are outside,
// the leader sends each of them a probe per Look, and at most one every other Round while smaller
// groups probe it. A merge of a group of a with a smaller one of b takes 4·a + 8·b − 4 messages, and
// 2·a more if the smaller one probes first. To drop one of n members takes 4·(n−2) + 1. Ten that
// start at once take more, since all of them probe all others.
//
// # Proof
//
// The tests explore all that can happen to three processes from several beginnings to a depth that
// they print: messages that are lost, late, overtaken and doubled, crashes, restarts, processes
// that quit, and clocks that have nothing to do with each other. They send ten through minutes of
// drawn faults, pauses and partitions, and then look whether those merge within [Timing.Merged] and stay so. Flaws that are
// planted are found by both.
package invitation
