// Package measure is what the programs in Go have in common: see ../../rust/src/lib.rs.
package measure

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

const warmUp = 50

// Run does what the command line asks for. A client takes and releases one lock by name.
func Run(client func(urls []string, name string) (lock, unlock func())) {
	switch arguments := os.Args[1:]; arguments[0] {
	case "rate":
		threads, err := strconv.Atoi(arguments[1])
		Must(err)
		seconds, err := strconv.ParseFloat(arguments[2], 64)
		Must(err)
		rate(threads, time.Duration(seconds*float64(time.Second)), arguments[3:], client)
	case "turns":
		lock, unlock := client(arguments[1:], "compare")
		turns(lock, unlock)
	}
}

// Must ends the program on an error.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

func rate(threads int, length time.Duration, urls []string, client func([]string, string) (lock, unlock func())) {
	times := make([][]time.Duration, threads)
	var ends sync.WaitGroup
	for thread := range threads {
		lock, unlock := client(urls, fmt.Sprintf("compare/%d", thread))
		ends.Go(func() {
			for range warmUp {
				lock()
				unlock()
			}
			for end := time.Now().Add(length); time.Now().Before(end); {
				begin := time.Now()
				lock()
				unlock()
				times[thread] = append(times[thread], time.Since(begin))
			}
		})
	}
	ends.Wait()
	all := slices.Concat(times...)
	slices.Sort(all)
	median := float64(all[len(all)/2]) / float64(time.Microsecond)
	fmt.Println(median, float64(len(all))/length.Seconds())
}

func turns(lock, unlock func()) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "lock" {
			lock()
			fmt.Println(time.Now().UnixNano())
		} else {
			fmt.Println(time.Now().UnixNano())
			unlock()
		}
	}
}
