// etcd's lock service, by gRPC over the HTTP/2 of the standard library. A call is one request, which the server carries
// out as its Go client would. The requests go round the endpoints, as those of that client do.
package main

import (
	"bytes"
	"compare/measure"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// Of the lease that all locks of a program share: longer than it runs.
const ttl = 600

var (
	calls  atomic.Uint64
	lease  []byte
	caller *http.Client
)

// number is a field with a number, bytesOf one with bytes, as protobuf has them.
func number(field int, value uint64) []byte {
	return binary.AppendUvarint([]byte{byte(field << 3)}, value)
}

func bytesOf(field int, value []byte) []byte {
	return append(binary.AppendUvarint([]byte{byte(field<<3 | 2)}, uint64(len(value))), value...)
}

// find returns the second field of a message: its bytes, or its number as it is encoded.
func find(message []byte) []byte {
	for len(message) > 0 {
		tag, rest := message[0], message[1:]
		value, length := binary.Uvarint(rest)
		content, after := rest[:length], rest[length:]
		if tag&7 == 2 {
			content, after = after[:value], after[value:]
		}
		if tag>>3 == 2 {
			return content
		}
		message = after
	}
	panic("no such field")
}

func call(urls []string, method string, message []byte) []byte {
	url := urls[calls.Add(1)%uint64(len(urls))] + method
	framed := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(framed))
	measure.Must(err)
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	response, err := caller.Do(request)
	measure.Must(err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	measure.Must(err)
	if status := response.Trailer.Get("Grpc-Status"); status != "0" || len(answer) < 5 {
		panic(fmt.Sprint(method, ": ", status, response.Header, response.Trailer))
	}
	return answer[5:]
}

func client(urls []string, name string) (lock, unlock func()) {
	if caller == nil {
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		caller = &http.Client{Transport: &http.Transport{Protocols: protocols}}
		lease = find(call(urls, "/etcdserverpb.Lease/LeaseGrant", number(1, ttl)))
	}
	id, _ := binary.Uvarint(lease)
	request := append(bytesOf(1, []byte(name)), number(2, id)...)
	var key []byte
	lock = func() { key = bytes.Clone(find(call(urls, "/v3lockpb.Lock/Lock", request))) }
	unlock = func() { call(urls, "/v3lockpb.Lock/Unlock", bytesOf(1, key)) }
	return lock, unlock
}

func main() { measure.Run(client) }
