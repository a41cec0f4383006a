// Package migrate has the test of docs/migrate: the programs on its pages are
// built, and each page's rollout is played on a real server.
package migrate
