//go:build race

package main_test

var raceFlag = []string{"-race"}
