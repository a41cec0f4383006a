// Package top shows a chronicle of elections on a terminal, as top shows processes.
package top
