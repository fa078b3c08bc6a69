// redsync, with redigo.
package main

import (
	"compare/measure"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"
)

const ttl = 10 * time.Second

// More than there are threads: each thread has a connection of its own.
const connections = 64

var shared *redsync.Redsync

func client(urls []string, name string) (lock, unlock func()) {
	if shared == nil {
		var pools []redsyncredis.Pool
		for _, url := range urls {
			dial := func() (redis.Conn, error) { return redis.DialURL(url) }
			pools = append(pools, redigo.NewPool(&redis.Pool{MaxIdle: connections, Dial: dial}))
		}
		shared = redsync.New(pools...)
	}
	mutex := shared.NewMutex(name, redsync.WithExpiry(ttl))
	lock = func() { measure.Must(mutex.Lock()) }
	unlock = func() {
		released, err := mutex.Unlock()
		measure.Must(err)
		if !released {
			measure.Must(errors.New("not released"))
		}
	}
	return lock, unlock
}

func main() { measure.Run(client) }
