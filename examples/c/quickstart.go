// Takes a lock, works under it, and releases it. An interrupt ends the wait for it.
//
//	cargo rustc --release --lib --features capi --crate-type cdylib,staticlib
//	CGO_CFLAGS="-I$PWD/src/ffi" \
//	CGO_LDFLAGS="-L$PWD/target/release -lquorumlock -Wl,-rpath,$PWD/target/release" \
//	go build -o quickstart examples/c/quickstart.go
//	./quickstart redis://127.0.0.1:6379 redis://127.0.0.1:6380 redis://127.0.0.1:6381
//
// The exit code is 0 when the lock was held to the end, 1 when it was not, and 2 when it could not
// be tried. A call blocks no other goroutine. A goroutine changes threads: reentrant locks need a
// quorumlock_owner.
package main

// #include <quorumlock.h>
// #include <stdlib.h>
import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"
	"unsafe"
)

var (
	errHeld    = errors.New("another client held it for the whole time")
	errExpired = errors.New("it took too long: another client may have had it too")
)

// check turns a result into an error. What the library has written to failure is freed.
func check(result C.quorumlock_result, failure *C.quorumlock_error) error {
	defer C.quorumlock_error_free(failure)
	switch {
	case result == C.QUORUMLOCK_OK:
		return nil
	case result == C.QUORUMLOCK_HELD:
		return errHeld
	case result == C.QUORUMLOCK_EXPIRED:
		return errExpired
	case failure != nil:
		return errors.New(text(C.quorumlock_error_message(failure)))
	}
	return errors.New(text(C.quorumlock_result_text(C.int(result))))
}

func text(text C.quorumlock_str) string {
	return C.GoStringN(text.data, C.int(text.length))
}

// lock waits until it has the lock, for that time at most or until the context ends.
func lock(ctx context.Context, mutex *C.quorumlock_mutex, wait time.Duration) (*C.quorumlock_guard, error) {
	cancel := C.quorumlock_cancel_handle_new()
	ended := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
			C.quorumlock_cancel_handle_cancel(cancel)
		case <-ended:
		}
	}()
	var guard *C.quorumlock_guard
	var failure *C.quorumlock_error
	result := C.quorumlock_mutex_lock(mutex, C.int64_t(wait.Milliseconds()), cancel, &guard, &failure)
	close(ended)
	<-stopped
	C.quorumlock_cancel_handle_free(cancel)
	return guard, check(result, failure)
}

func run(ctx context.Context, urls []string) error {
	config := C.quorumlock_config_new()
	defer C.quorumlock_config_free(config)
	for _, url := range urls {
		node := C.CString(url)
		result := C.quorumlock_config_add_node(config, node, C.size_t(len(url)))
		C.free(unsafe.Pointer(node))
		if err := check(result, nil); err != nil {
			return err
		}
	}
	// One client for the whole program. It connects when it is first needed.
	var client *C.quorumlock_client
	var failure *C.quorumlock_error
	if err := check(C.quorumlock_client_new(config, &client, &failure), failure); err != nil {
		return err
	}
	defer C.quorumlock_client_free(client)

	name := "orders/42"
	bytes := C.CString(name)
	defer C.free(unsafe.Pointer(bytes))
	var mutex *C.quorumlock_mutex
	result := C.quorumlock_client_mutex(client, bytes, C.size_t(len(name)), C.QUORUMLOCK_LOCK_PLAIN, &mutex)
	if err := check(result, nil); err != nil {
		return err
	}
	defer C.quorumlock_mutex_free(mutex)

	guard, err := lock(ctx, mutex, 10*time.Second)
	if err != nil {
		return err
	}
	defer C.quorumlock_guard_free(guard)
	fmt.Printf("ours for %d ms\n", uint64(C.quorumlock_guard_remaining_ms(guard)))
	// Work here, and look at what remains before each step that must not be done twice.
	if err := check(C.quorumlock_guard_unlock(guard, &failure), failure); err != nil {
		return err
	}
	fmt.Println("released in time")
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch err := run(ctx, os.Args[1:]); err {
	case nil:
	case errHeld, errExpired:
		fmt.Println(err)
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
