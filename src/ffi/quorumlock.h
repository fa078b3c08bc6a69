/*
 * quorumlock: a distributed lock over N independent Redis or Valkey masters, for threaded programs.
 *
 * All nodes are asked at once, and a majority decides. A lock is a lease: it ends when its guard is unlocked or freed,
 * or with its time to live. Nothing here needs an event loop. The library starts a thread for locks that are extended
 * automatically or watched for their loss, one for each client, one for each node with a provider or a password file,
 * one for files of certificates, and short-lived ones to resolve host names and to send pending releases.
 *
 *     quorumlock_config -> quorumlock_client -> quorumlock_mutex -> quorumlock_guard -> quorumlock_lease
 *      nodes, settings      connections          one resource        a held lock         a lock to hand over
 *
 * This file is written by hand and checked by tests: it is the reference for C, C++ and every language that can call
 * C. C99 is enough. README.md says what the lock promises, and what no lease can; read that first.
 *
 * Conventions
 *
 * These hold for every function. A comment at a function says only what differs, and what is particular to it.
 *
 *  1. Handles are opaque. The caller owns what a function returns, until the `_free` of its type, once, in any order:
 *     a client may be freed before its guards, a config as soon as the client is made. A handle outlives the calls
 *     that use it: a callback may free the handle in whose call it runs. As with free(), a handle that is used or
 *     freed again after its `_free` is undefined behaviour; so is a use that another thread begins during its `_free`.
 *  2. Results are numbers with fixed meanings, which are never given to anything else: see quorumlock_result. Below
 *     100, the call did its work, and the number is the answer. From 100 on, it did not.
 *  3. Outputs are the last arguments. They are written on QUORUMLOCK_OK, and left alone otherwise.
 *  4. `error` is the very last one, and may be NULL. It is written if and only if the result is 100 or more, with a
 *     new quorumlock_error that the caller owns.
 *  5. NULL for a handle, a text or an output gives QUORUMLOCK_NULL_POINTER and does nothing else; where NULL is
 *     allowed, the comment says so. A function without a quorumlock_result gives 0, NULL, an empty text, or the value
 *     named NONE, UNKNOWN or OK; likewise for an index out of range. `_free` of NULL does nothing.
 *  6. Texts are a pointer and a length in bytes, UTF-8, without a NUL at their end; NUL bytes inside are like any
 *     other. More than 1 MiB is refused before it is read (QUORUMLOCK_TOO_LONG). Texts and pointers that a function
 *     returns belong to the handle that was asked, and last as long as it.
 *  7. Times are whole milliseconds (`_ms`), and microseconds where the name says `_us`. Remaining times are rounded
 *     down.
 *  8. Threads: any thread may call any function at any time, with handles made by any other thread. A lock that one
 *     thread took another may unlock. Only the calls that say so wait for nodes or for other threads.
 *  9. Signals: no function may be called in a signal handler. Signals with and without SA_RESTART disturb no call. The
 *     library sends none, SIGPIPE included, installs no handler, and its threads block all signals. pthread_cancel()
 *     of a thread that is in a call here takes effect at the next cancellation point after the call has returned, with
 *     its outputs written: what the call has returned is still to be freed, by pthread_cleanup_push() for one. To end
 *     a wait early, use a quorumlock_cancel_handle. (Linux, with the default, PTHREAD_CANCEL_DEFERRED.)
 * 10. After fork(), clients, mutexes and guards belong to the parent. In the child, their functions give
 *     QUORUMLOCK_FORKED where they have a result (a setting of a mutex may also give QUORUMLOCK_OK, without effect),
 *     touch no connection, and change no lock; stored texts and numbers can still be read. A config, an error, a
 *     lease, a secret, a cancel handle and a copy of nodes are plain memory: the child has a copy of its own, and can
 *     build its own client from the config. It may free what it inherited, or leave it. Callbacks of inherited clients
 *     and guards are not called there, nor their `release`.
 * 11. Callbacks run on the thread whose call found the event, or on the client's thread; never under a lock of the
 *     library. They may call anything here. They must be quick, must not throw, longjmp or end their thread, and must
 *     not wait for a lock that their thread holds. After its own event, one call delivers at most 32 events that
 *     other calls have left; a wait does so after each attempt.
 * 12. dlclose() after all handles are freed leaves no thread and no descriptor. The code stays in memory: a look-up of
 *     a host name may still be running, and threads may have destructors to run.
 * 13. A panic, which is a bug in the library, never unwinds into the program: it becomes QUORUMLOCK_PANIC.
 *
 * "Gives" lists the results of a function besides QUORUMLOCK_NULL_POINTER, _NOT_UTF8, _TOO_LONG, _FORKED and _PANIC,
 * which follow from the conventions.
 */
#ifndef QUORUMLOCK_H
#define QUORUMLOCK_H

#include <stddef.h>
#include <stdint.h>

/* The version of this header. quorumlock_version_number() gives that of the library. */
#define QUORUMLOCK_VERSION_MAJOR 0
#define QUORUMLOCK_VERSION_MINOR 1
#define QUORUMLOCK_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a call. */
typedef enum quorumlock_result {
    /* Below 100: answers. */

    /* Done: taken, released, extended, written. */
    QUORUMLOCK_OK = 0,
    /* Another client has the lock. */
    QUORUMLOCK_HELD = 1,
    /* The release came too late: the lease had ended, or so many nodes did not have the key that no majority can have
     * held it. Another client may have had the lock since: a program that relies on exclusion must check its work. */
    QUORUMLOCK_EXPIRED = 2,
    /* The lock is lost, and cannot be extended: the lease has ended, or so many nodes do not have the key that no
     * majority can hold it. */
    QUORUMLOCK_LOST = 3,
    /* The guard holds no lock any more: it was unlocked or detached before. Of quorumlock_mutex_holder: no client has
     * the lock. */
    QUORUMLOCK_NOT_HELD = 4,
    /* A level of a reentrant lock has ended, and the lock is still held by others. */
    QUORUMLOCK_STILL_HELD = 5,

    /* From 100: the call failed, for a reason outside of its arguments. */

    /* A setting, a node's URL, a name or a time to live cannot be used; the message says which. */
    QUORUMLOCK_CONFIG = 100,
    /* Fewer than a majority of nodes could answer, or answered too late. Whether the lock is held is not known. */
    QUORUMLOCK_UNAVAILABLE = 101,
    /* The lease that was to be attached has ended, or the lock of the guard is lost. */
    QUORUMLOCK_LEASE_LOST = 102,
    /* The wait was cancelled. Nothing is held. */
    QUORUMLOCK_CANCELLED = 103,
    /* The operating system gave no random bytes. Nothing was sent. */
    QUORUMLOCK_ENTROPY = 104,
    /* This process is a child made by fork, and the handle belongs to the parent. Nothing was touched. */
    QUORUMLOCK_FORKED = 105,
    /* Too few nodes answered an extension. The lock is still held for what is left of its old lease. */
    QUORUMLOCK_EXTENSION_FAILED = 106,
    /* The lock is held, and ends before the time that quorumlock_guard_ensure requires. */
    QUORUMLOCK_LEASE_TOO_SHORT = 107,
    /* The client is shut down, and grants no lock any more. Nothing is held. */
    QUORUMLOCK_SHUT_DOWN = 108,
    /* The time for the shutdown has passed before its end. The message names each lock that is still held, and the
     * faults are the nodes that have not run all releases. */
    QUORUMLOCK_SHUTDOWN_INCOMPLETE = 109,

    /* From 200: the arguments are invalid. Nothing was done. */

    /* NULL where a value is required. */
    QUORUMLOCK_NULL_POINTER = 200,
    /* The text is not UTF-8. */
    QUORUMLOCK_NOT_UTF8 = 201,
    /* The text is longer than 1 MiB: most likely the length is wrong. */
    QUORUMLOCK_TOO_LONG = 202,
    /* A callback from within quorumlock_guard_extend or quorumlock_guard_on_lost has called a function with the
     * same guard; or another thread is locking with the same quorumlock_owner. */
    QUORUMLOCK_BUSY = 203,
    /* The lease was attached, or made into text, before. */
    QUORUMLOCK_CONSUMED = 204,
    /* This system, or this build of the library, does not have the feature. */
    QUORUMLOCK_UNSUPPORTED = 205,
    /* The number is none of those that the function knows. */
    QUORUMLOCK_INVALID_ARGUMENT = 206,

    /* A bug in the library. */
    QUORUMLOCK_PANIC = 300
} quorumlock_result;

/* A text: not ended by a NUL, and never NULL. printf("%.*s", (int)text.length, text.data) */
typedef struct quorumlock_str {
    const char *data;
    size_t length;
} quorumlock_str;

/* The nodes and settings from which a client is made. */
typedef struct quorumlock_config quorumlock_config;
/* The nodes of one quorum, and the connections to them. One is enough for the whole program. */
typedef struct quorumlock_client quorumlock_client;
/* The lock of one resource. */
typedef struct quorumlock_mutex quorumlock_mutex;
/* Ends waits from another thread. */
typedef struct quorumlock_cancel_handle quorumlock_cancel_handle;
/* An owner of reentrant locks that is no thread. */
typedef struct quorumlock_owner quorumlock_owner;
/* A held lock. */
typedef struct quorumlock_guard quorumlock_guard;
/* A held lock without a guard, to be handed to another thread or process. */
typedef struct quorumlock_lease quorumlock_lease;
/* A lease as text. It carries the owner token: its reader has the lock. */
typedef struct quorumlock_secret quorumlock_secret;
/* Why a call failed. */
typedef struct quorumlock_error quorumlock_error;
/* A node that gave no usable answer, and the cause. Belongs to an error, an event or a copy of nodes. */
typedef struct quorumlock_fault quorumlock_fault;
/* A copy of the state of a client's nodes. */
typedef struct quorumlock_nodes quorumlock_nodes;
/* What clients count, for a metrics server. */
typedef struct quorumlock_counters quorumlock_counters;

/* An event. Lasts until the callback returns that it was given to. */
typedef struct quorumlock_event quorumlock_event;
/* The client that has a lock, as nodes said. */
typedef struct quorumlock_holder quorumlock_holder;

/* ---- Version and time ------------------------------------------------------------------------------------------- */

/* The version of the library, such as "0.1.0". Valid until the program ends. */
quorumlock_str quorumlock_version(void);

/* The version as a number: major * 65536 + minor * 256 + patch. */
uint32_t quorumlock_version_number(void);

/* The clock of deadlines: milliseconds of CLOCK_MONOTONIC, where there is one. It never runs backwards. */
uint64_t quorumlock_now_ms(void);

/* A result in a few words, such as "held by another client"; "unknown result" for a number that is none. Valid until
 * the program ends. */
quorumlock_str quorumlock_result_text(int result);

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

/* The phase in which a node failed. More may follow in later versions. */
typedef enum quorumlock_phase {
    QUORUMLOCK_PHASE_NONE = 0,
    /* Looking up its host name. */
    QUORUMLOCK_PHASE_RESOLVE = 1,
    /* Opening the connection. */
    QUORUMLOCK_PHASE_CONNECT = 2,
    /* Logging in and learning what kind of server it is. */
    QUORUMLOCK_PHASE_HANDSHAKE = 3,
    /* Waiting for the answer to a command. */
    QUORUMLOCK_PHASE_REPLY = 4
} quorumlock_phase;

/* What went wrong with a node. More may follow in later versions. */
typedef enum quorumlock_cause {
    QUORUMLOCK_CAUSE_NONE = 0,
    /* The user or the password was refused, or is missing. */
    QUORUMLOCK_CAUSE_AUTH = 1,
    /* Too many commands wait for an answer of this node. It gets no more until it answers. */
    QUORUMLOCK_CAUSE_BACKLOG = 2,
    /* The node closed or reset the connection. */
    QUORUMLOCK_CAUSE_CLOSED = 3,
    /* The node is in cluster mode, and its cluster is not one shard that owns all slots. */
    QUORUMLOCK_CAUSE_CLUSTER_MODE = 4,
    /* The database number of the URL does not exist on the node. */
    QUORUMLOCK_CAUSE_DATABASE = 5,
    /* The URL leads to the same server as another one: quorumlock_fault_number() is the index of that node. */
    QUORUMLOCK_CAUSE_DUPLICATE = 6,
    /* The node is loading its data. */
    QUORUMLOCK_CAUSE_LOADING = 7,
    /* The user may not run the command or touch the key. */
    QUORUMLOCK_CAUSE_NO_PERMISSION = 8,
    /* The node is a replica. */
    QUORUMLOCK_CAUSE_NOT_MASTER = 9,
    /* The node is out of memory. */
    QUORUMLOCK_CAUSE_OUT_OF_MEMORY = 10,
    /* The bytes are not those of a Redis server. */
    QUORUMLOCK_CAUSE_PROTOCOL = 11,
    /* The node lost its keys, or is new, and may have forgotten locks: it does not vote yet. */
    QUORUMLOCK_CAUSE_QUARANTINED = 12,
    /* The node does not take writes. */
    QUORUMLOCK_CAUSE_READ_ONLY = 13,
    /* Nothing listens at the address. */
    QUORUMLOCK_CAUSE_REFUSED = 14,
    /* Another error reply; the message has its first word. */
    QUORUMLOCK_CAUSE_SERVER = 15,
    /* The operating system failed a call: quorumlock_fault_number() is its errno. */
    QUORUMLOCK_CAUSE_SYSTEM = 16,
    /* No answer in time. */
    QUORUMLOCK_CAUSE_TIMED_OUT = 17,
    /* The node has reached its limit of clients. */
    QUORUMLOCK_CAUSE_TOO_MANY_CLIENTS = 18,
    /* The host name has no address. */
    QUORUMLOCK_CAUSE_UNKNOWN_HOST = 19,
    /* No route leads to the address. */
    QUORUMLOCK_CAUSE_UNREACHABLE = 20,
    /* The key of a fenced or read-write lock, or the queue of a fair one, holds another value. It is left as it is. */
    QUORUMLOCK_CAUSE_UNEXPECTED_VALUE = 21,
    /* The node runs no scripts, or none for this user. Without them, a plain lock can be taken, and is neither extended
     * nor released. */
    QUORUMLOCK_CAUSE_NO_SCRIPTS = 22,
    /* The number that this node keeps of a lock is more than a day ahead of the clock of the node or of this machine.
     * The node does not vote for this lock. If all nodes have this cause, check the clock of this machine. */
    QUORUMLOCK_CAUSE_FENCE_AHEAD = 23,
    /* The lock is held by a key that has no expiry: it is never freed by itself. */
    QUORUMLOCK_CAUSE_NO_EXPIRY = 24,
    /* The certificate of the node is not accepted: quorumlock_fault_number() is a quorumlock_certificate_error. */
    QUORUMLOCK_CAUSE_CERTIFICATE = 25,
    /* The URL says "rediss://", and what listens there does not speak TLS. */
    QUORUMLOCK_CAUSE_NOT_TLS = 26,
    /* TLS failed for another reason than the certificate: quorumlock_fault_number() is the number of the server's alert
     * (RFC 8446, section 6), 116 when the server requires a client certificate, or -1. */
    QUORUMLOCK_CAUSE_TLS = 27,
    /* There is nothing to log in with: the password file cannot be read or used, or the provider fails. */
    QUORUMLOCK_CAUSE_CREDENTIALS = 28
} quorumlock_cause;

/* Why the certificate of a node is not accepted. More may follow in later versions. */
typedef enum quorumlock_certificate_error {
    /* Damaged, revoked, for another purpose, or of a kind that is not supported. */
    QUORUMLOCK_CERTIFICATE_OTHER = 1,
    /* No root that the client trusts has issued it. */
    QUORUMLOCK_CERTIFICATE_UNKNOWN_ISSUER = 2,
    /* It has expired, or one that it was issued by. */
    QUORUMLOCK_CERTIFICATE_EXPIRED = 3,
    /* It is not valid yet, or the clock of this machine is wrong. */
    QUORUMLOCK_CERTIFICATE_NOT_YET_VALID = 4,
    /* It is for other names or addresses. */
    QUORUMLOCK_CERTIFICATE_WRONG_NAME = 5,
    /* It is of X.509 version 1, which names no hosts. */
    QUORUMLOCK_CERTIFICATE_VERSION_1 = 6
} quorumlock_certificate_error;

/* Frees an error, its texts and its faults. */
void quorumlock_error_free(quorumlock_error *error);

/* The result that the error came with. */
quorumlock_result quorumlock_error_result(const quorumlock_error *error);

/* What went wrong, in one line, with the state of each node. Contains no password, owner token, full URL or text from
 * a server. */
quorumlock_str quorumlock_error_message(const quorumlock_error *error);

/* 1 when a retry cannot help until something is changed, otherwise 0. That is: invalid settings or arguments, a lease
 * that has ended or was consumed, a client that is shut down, a handle of the parent process, what this build or system
 * does not have, a panic, or so many nodes with permanent faults that the others are no majority.
 * Permanent faults are QUORUMLOCK_CAUSE_AUTH, _CERTIFICATE unless it is not valid yet, _CLUSTER_MODE, _DATABASE,
 * _DUPLICATE, _NO_EXPIRY, _NO_PERMISSION, _NO_SCRIPTS, _NOT_MASTER, _NOT_TLS, _READ_ONLY, and _TLS where client and
 * node have to be configured to suit each other. */
int quorumlock_error_is_permanent(const quorumlock_error *error);

/* How many nodes gave no usable answer. */
size_t quorumlock_error_fault_count(const quorumlock_error *error);

/* One of them, counted from 0, in the order in which the nodes were named. */
const quorumlock_fault *quorumlock_error_fault(const quorumlock_error *error, size_t index);

/* The address of the node: "host:port", or "unix:" and a path. */
quorumlock_str quorumlock_fault_address(const quorumlock_fault *fault);

/* The phase in which the node failed. */
quorumlock_phase quorumlock_fault_phase(const quorumlock_fault *fault);

/* What went wrong there. */
quorumlock_cause quorumlock_fault_cause(const quorumlock_fault *fault);

/* The number that belongs to the cause, see QUORUMLOCK_CAUSE_CERTIFICATE, _DUPLICATE, _SYSTEM and _TLS. -1 if none
 * does, and for NULL. */
int64_t quorumlock_fault_number(const quorumlock_fault *fault);

/* Address, cause and phase in one line, such as "10.0.0.3:6379: no reply within 100 ms (node_timeout)". */
quorumlock_str quorumlock_fault_message(const quorumlock_fault *fault);

/* ---- Configuration ---------------------------------------------------------------------------------------------- */

/* A configuration without nodes, with defaults for the rest. NULL if there is no memory. */
quorumlock_config *quorumlock_config_new(void);

/* A configuration from the environment variables that begin with `prefix`, such as "LOCKS_": LOCKS_NODES has the
 * URLs, separated by commas, and LOCKS_TTL=30s is a setting; the documentation of Builder::from_env has the table. The
 * error names the variable and not its value. No other thread may change the environment meanwhile. */
quorumlock_result quorumlock_config_from_env(
    const char *prefix, size_t prefix_length, quorumlock_config **config, quorumlock_error **error);

/* Frees a configuration. Clients that were made of it are not affected. */
void quorumlock_config_free(quorumlock_config *config);

/* Adds a node, an independent Redis or Valkey master: "redis://[user:password@]host[:port][/database]" or
 * "unix://[user:password@]path". "rediss://" instead of "redis://" is TLS, in a build with the feature "tls".
 * Parameters may follow, as in "?db=1&durable=true": "db" is the number of the database, also in place of "/database";
 * "durable" is "true" or "false", and declares whether the node is durable; "server_name", for "rediss://", is the host
 * name or IP address that the certificate of the node must be for. All clients of a lock must name the same nodes.
 * Three or five make a sound quorum; at most 64. quorumlock_client_new refuses what is no such URL. */
quorumlock_result quorumlock_config_add_node(quorumlock_config *config, const char *url, size_t url_length);

/* Changes a setting. `name` is that of the environment variable in lower case, and `value` its text:
 *
 *     cacert                 a file of roots, in PEM, that the certificates of "rediss://" nodes are checked against;
 *                            it is read when a client is made and when it changes; each call adds one. Default: the
 *                            roots of the system in a build with the feature "tls-native-roots", otherwise none
 *     cert, key              files with the certificate of the client and with its private key, in PEM: both or none
 *     drift_factor           "0.01", the default: the part of a time to live by which clocks may differ; a lease is
 *                            shorter by it, and by 2 ms. At least 0, less than 1
 *     durable                "true" or "false", the default: whether nodes keep every write that they have confirmed,
 *                            through restarts, crashes ("appendonly yes" and "appendfsync always") and fail-overs,
 *                            and so vote at once after a restart. A node whose INFO has aof_enabled:0 contradicts
 *                            this, and the declaration is ignored. "durable=" in a URL has precedence
 *     fence_retention        "24h", the default: how long nodes keep the key of a fenced lock, and with it the last
 *                            number, after its last use; of a read-write lock, after the last writer with a number.
 *                            Never less than max_ttl and two minutes. The same in all clients
 *     label                  "billing@host7/4711": 1 to 64 visible ASCII characters by which the client calls itself.
 *                            They are in the values of its keys, for quorumlock_mutex_holder. Default: none
 *     max_ttl                "60s", the default: the longest time to live that a lock may ask for, and how long a
 *                            restarted node does not vote. The same in all clients
 *     node_timeout           "100ms", the default: how long each node has to answer an attempt, which has the same time
 *                            again where it has to connect first. Longer than a round trip, and at least 1 ms
 *     password_file          a file with the password of nodes whose URLs contain none, with the user of the URL, as in
 *                            "redis://alice@host". It is read before each connection and once a second, and where it
 *                            has another password, open connections log in anew. Default: none
 *     place_lease            "1s", the default: how long a program that is first in the queue of a lock may let the
 *                            others wait, and how often a call that waits asks the nodes without a message. From 1 ms
 *                            to 1 h
 *     prefix                 the text before the name of each resource in its key. Default: empty
 *     release_notifications  "true", the default, or "false": whether a call that waits is told of the releases of
 *                            other programs, by a second connection to each node
 *     restart_policy         "observed", the default: a program that has just started does not count a node that lost
 *                            its keys or joined less than max_ttl ago, and counts all nodes of a new deployment.
 *                            "strict": a program that has just started counts a node when it has lost nothing for
 *                            max_ttl, also in a new deployment. "off": a program that has just started counts every
 *                            node, whatever it has lost; two clients may then hold a lock at once
 *     retry_delay            "2ms,250ms", the default: the shortest and the longest delay between two attempts
 *     spin                   "100us", the default: how long a thread that is alone with its client polls before it
 *                            sleeps, where that is faster. At most 10 ms; "0" turns it off
 *     ttl                    "10s", the default: the time to live of locks that quorumlock_mutex_set_ttl_ms was not
 *                            called for
 *     unavailable_after      "3s", the default: how long quorumlock_mutex_lock goes on when no majority of nodes
 *                            answers, and any wait when permanent faults (see quorumlock_error_is_permanent) leave no
 *                            majority
 *
 * A duration has a unit: us, ms, s, m, h or d. Settings of which one depends on another are checked when a client is
 * made.
 * Returns QUORUMLOCK_CONFIG for another name, for a value that the setting cannot have, and for "cacert", "cert" and
 * "key" in a build without the feature "tls"; the setting is as before then. The error does not contain the value. */
quorumlock_result quorumlock_config_set(
    quorumlock_config *config, const char *name, size_t name_length, const char *value, size_t value_length,
    quorumlock_error **error);

/* The label "host/pid" of this machine and process. */
quorumlock_result quorumlock_config_set_label_here(quorumlock_config *config);

/* Adds roots as "cacert" of quorumlock_config_set does: certificates in PEM, one or more. Certificates are always
 * checked; nothing switches that off.
 * Gives QUORUMLOCK_OK, or QUORUMLOCK_UNSUPPORTED in a build without the feature "tls". */
quorumlock_result quorumlock_config_set_tls_roots_pem(quorumlock_config *config, const char *pem, size_t pem_length);

/* Sets a client certificate, with those that lead from it to a root, and its private key, each in PEM, for servers with
 * "tls-auth-clients yes". The key must not be encrypted. Default: none.
 * Gives QUORUMLOCK_OK, or QUORUMLOCK_UNSUPPORTED in a build without the feature "tls". */
quorumlock_result quorumlock_config_set_tls_identity_pem(
    quorumlock_config *config, const char *certificate, size_t certificate_length, const char *key, size_t key_length);

/* Releases what was given as userdata. May be called on any thread. */
typedef void (*quorumlock_release)(void *userdata);

/* What a provider sets by quorumlock_login_set. Lasts until the provider returns. */
typedef struct quorumlock_login quorumlock_login;

/* Sets what to log in with. `user` may be NULL: then it is the user of the URL, or the default user. After
 * refresh_after_ms the provider is called again, and the open connection logs in anew; with 0 it is called for the next
 * connection. The texts are yours, and are read during this call only. */
quorumlock_result quorumlock_login_set(
    quorumlock_login *login, const char *user, size_t user_length, const char *password, size_t password_length,
    uint64_t refresh_after_ms);

/* Finds what to log in to a node with, and sets it in `login`. `node` is the address, such as "10.0.0.1:6379". Returns
 * 0 if it has; after any other number, what was set before is used as long as the server accepts it. */
typedef int (*quorumlock_provider)(void *userdata, quorumlock_str node, quorumlock_login *login);

/* Has the clients that are made of the configuration from now on ask a provider for the credentials of nodes whose URLs
 * contain no password. It is called before each connection, on a thread of the library's for each node: it may block,
 * and no lock waits for it where a connection is open. A failure is QUORUMLOCK_EVENT_CREDENTIALS_FAILED, and it is
 * called again after a second. It replaces an earlier provider and "password_file". `userdata` and `release` are as in
 * quorumlock_config_add_observer. The last `_free` of a client does not wait for a provider that blocks, and may wait
 * for `release` on another thread: hold no lock then that it takes. */
quorumlock_result quorumlock_config_set_provider(
    quorumlock_config *config, quorumlock_provider provider, void *userdata, quorumlock_release release);

/* Receives events of locks and nodes. `event` lasts until the callback returns. See convention 11. */
typedef void (*quorumlock_observer)(void *userdata, const quorumlock_event *event);

/* Adds an observer to the clients that are made of the configuration from now on. Each event goes to all observers of a
 * client, in the order in which they were added. `userdata` is handed to it unchanged, on any thread, and may be NULL.
 * `release`, which may be NULL, is called with it exactly once: when the observer will not be called any more, because
 * the configuration and all clients, mutexes and guards made with it are gone, or at once if the result is not
 * QUORUMLOCK_OK. */
quorumlock_result quorumlock_config_add_observer(
    quorumlock_config *config, quorumlock_observer observer, void *userdata, quorumlock_release release);

/* ---- Counters --------------------------------------------------------------------------------------------------- */

/* Receives a text, for the time of the call. */
typedef void (*quorumlock_write)(void *userdata, const char *data, size_t length);

/* Makes counters: atomic numbers of what clients do, without a thread. With 0, all resources are one class, "all".
 * With an ASCII character, the class of a resource is its name up to that character, such as "orders" of "orders/42"
 * with '/'. There are at most 256 classes, of at most 128 bytes; what exceeds that is counted as "other". In a child of
 * fork the counters are a copy that nothing changes. Gives NULL for another number. */
quorumlock_counters *quorumlock_counters_new(int separator);

/* The clients that are made of the configuration from now on count here, in place of counters that were attached
 * before. All of them should name the same nodes. */
quorumlock_result quorumlock_counters_attach(const quorumlock_counters *counters, quorumlock_config *config);

/* Calls `write` once, in this thread, with all series in the Prometheus text format, version 0.0.4. Asks no node and
 * waits for none. */
quorumlock_result quorumlock_counters_text(
    const quorumlock_counters *counters, quorumlock_write write, void *userdata);

/* Frees counters. Clients that count there go on to, and their last handle ends it. */
void quorumlock_counters_free(quorumlock_counters *counters);

/* ---- Client ----------------------------------------------------------------------------------------------------- */

/* Makes a client. Connects to no node, and does not fail because a node is down. The configuration can be freed,
 * changed or used again, also in a child of fork.
 * Gives QUORUMLOCK_CONFIG for invalid settings, QUORUMLOCK_UNAVAILABLE without descriptors or memory. */
quorumlock_result quorumlock_client_new(
    const quorumlock_config *config, quorumlock_client **client, quorumlock_error **error);

/* Waits until every node has run the pending releases of this client, for timeout_ms at most: those that are not sent
 * or not answered yet, and those that are sent again because a node was down or could not run them. Closes nothing:
 * the client can be used afterwards. A program that ends by exit without freeing its clients calls this before:
 * releases that are not sent by then are lost, and those locks stay held for their time to live.
 * Gives QUORUMLOCK_UNAVAILABLE when a node has not run all of them in time, with that node among the causes. */
quorumlock_result quorumlock_client_flush_releases(
    const quorumlock_client *client, uint64_t timeout_ms, quorumlock_error **error);

/* Ends the work of a client, for a program that is told to end: waits for timeout_ms at most. From its first moment on,
 * each call for a lock fails with QUORUMLOCK_SHUT_DOWN, and so do the calls that wait. Guards are valid and extended as
 * before, and the function waits until all of them are unlocked or freed, and every node has run the releases. It may
 * be called again, to wait for longer, and by several threads at once. With 0, and called by an observer, it begins
 * the shutdown and does not wait. Not for a handler of signals.
 * Gives QUORUMLOCK_SHUTDOWN_INCOMPLETE when that has not happened in time. */
quorumlock_result quorumlock_client_shutdown(
    const quorumlock_client *client, uint64_t timeout_ms, quorumlock_error **error);

/* Frees a client. Its connections are closed, and its threads end, when its mutexes and guards are freed too. The last
 * of these calls waits for the answers to releases, until none has arrived for a node timeout, and for 5 s at most (a
 * node timeout, if that is longer). It also waits for the threads, a node timeout at most, unless it is made on such a
 * thread, by a callback. A thread that is in a callback for longer ends when that returns. In a child of fork: only
 * closes the child's copies of the connections. */
void quorumlock_client_free(quorumlock_client *client);

/* ---- Mutex ------------------------------------------------------------------------------------------------------ */

/* The kind of a lock. Of one name, plain, fenced and read-write locks are three different locks: all programs must
 * agree. Where nodes run no scripts, only a plain lock can be taken, and none can be released. */
typedef enum quorumlock_lock_kind {
    /* One holder. */
    QUORUMLOCK_LOCK_PLAIN = 0,
    /* One holder, and each acquisition gets a number that is greater than those of all before: see
     * quorumlock_guard_fencing_token. */
    QUORUMLOCK_LOCK_FENCED = 1,
    /* The read-write lock, to read together with others that read. The threads of a client that read share one lease. A
     * thread must not lock to read what it has locked to read. */
    QUORUMLOCK_LOCK_READ = 2,
    /* The same lock as QUORUMLOCK_LOCK_READ, to write: alone. A writer that waits is in front of readers that come
     * later. */
    QUORUMLOCK_LOCK_WRITE = 3,
    /* The same lock as QUORUMLOCK_LOCK_WRITE, with a number for each writer that asks for one. Readers have none. */
    QUORUMLOCK_LOCK_FENCED_WRITE = 4
} quorumlock_lock_kind;

/* The lock of a resource, of a quorumlock_lock_kind. Asks no node. A name has 1 to 4096 bytes; an invalid one is
 * reported when it is locked. Mutexes of the same kind and name are the same lock, in this program and in every other
 * that uses the same nodes and prefix. A thread that locks what it holds waits for itself, unless
 * quorumlock_mutex_set_reentrant allows it; observers get QUORUMLOCK_EVENT_WAITING_FOR_ITSELF. In a child of fork:
 * gives a mutex whose calls give QUORUMLOCK_FORKED.
 * Gives QUORUMLOCK_OK, or QUORUMLOCK_INVALID_ARGUMENT for a number that is no kind. */
quorumlock_result quorumlock_client_mutex(
    const quorumlock_client *client, const char *name, size_t name_length, int kind, quorumlock_mutex **mutex);

/* The lock of several resources: all of them or none, with one lease. Asks no node. The order of the `count` names does
 * not matter, and each counts once; there are 1 to 64, each as in quorumlock_client_mutex. The texts are yours, and are
 * read during this call only. Each key is that of a plain lock of its name. A set that waits holds nothing, so that
 * sets do not deadlock, with each other or with single locks. In all else it is a mutex like any other: its name is
 * that of all its resources, separated by ", ". It cannot be fair or reentrant, and has no holder to be asked for: such
 * a call gives QUORUMLOCK_CONFIG. */
quorumlock_result quorumlock_client_mutex_set(
    const quorumlock_client *client, const quorumlock_str *names, size_t count, quorumlock_mutex **mutex);

/* Permits, of which at most `permits` are held at once, 1 to 256: to lock this mutex is to acquire one. Asks no node. A
 * permit is any of the plain locks name#0, name#1 and so on, its slots; quorumlock_guard_slot and the name of the guard
 * say which. Programs that use different numbers never have more permits together than the largest. In all else it is a
 * mutex like any other, but it cannot be fair or reentrant, and has no holder to be asked for: such a call gives
 * QUORUMLOCK_CONFIG. */
quorumlock_result quorumlock_client_semaphore(
    const quorumlock_client *client, const char *name, size_t name_length, size_t permits, quorumlock_mutex **mutex);

/* Frees a mutex. Guards that were taken with it are not affected, nor are threads that wait in a call with it. May be
 * the last call of the client: see quorumlock_client_free. */
void quorumlock_mutex_free(quorumlock_mutex *mutex);

/* The name of the resource. */
quorumlock_str quorumlock_mutex_name(const quorumlock_mutex *mutex);

/* How long the lock lasts unless it is released or extended. Default: "ttl" of quorumlock_config_set. At least 1
 * and more than the drift allowance, at most "max_ttl"; checked when it is locked. This setting and
 * those below apply to locks that are taken afterwards. */
quorumlock_result quorumlock_mutex_set_ttl_ms(quorumlock_mutex *mutex, uint64_t ttl_ms);

/* Whether locks are extended automatically while they are held; not if `enabled` is 0. Default: 0. 1 keeps the
 * settings below, 0 resets them. An extension is due after a third of the time to live, and is tried again several
 * times before the end. One thread does it for all locks of a client. */
quorumlock_result quorumlock_mutex_set_watchdog(quorumlock_mutex *mutex, int enabled);

/* The time from one extension to the next. Turns automatic extension on. Default: a third of the time to live. At
 * least 1. */
quorumlock_result quorumlock_mutex_set_watchdog_period_ms(quorumlock_mutex *mutex, uint64_t period_ms);

/* How long before the end of its validity a lock that could not be extended counts as lost. Turns automatic extension
 * on. Default: a tenth of the validity, at most 1000. Less than half of the validity. */
quorumlock_result quorumlock_mutex_set_watchdog_notify_before_ms(quorumlock_mutex *mutex, uint64_t margin_ms);

/* The largest number of automatic extensions of a lock. Turns automatic extension on. Default: without limit. */
quorumlock_result quorumlock_mutex_set_watchdog_max_extensions(quorumlock_mutex *mutex, uint32_t extensions);

/* For how long a lock is extended automatically, counted from when it is taken. Turns automatic extension on. Default:
 * without limit. */
quorumlock_result quorumlock_mutex_set_watchdog_max_duration_ms(quorumlock_mutex *mutex, uint64_t time_ms);

/* How long the lock is held at least, from when it was taken, however early its guard is unlocked or freed: then a
 * release does not free it but sets its end to that time. For a short job that several machines start at nearly the
 * same time. Default: 0. At most the longest time to live of the configuration. */
quorumlock_result quorumlock_mutex_set_min_hold_ms(quorumlock_mutex *mutex, uint64_t time_ms);

/* Whether programs get the lock in the order in which they began to wait, without exception; not if `enabled` is 0.
 * Default: 0, as a rule: a call tries once before it waits. It excludes plain locks of the same name, and takes turns
 * with them; or if it is fenced as well, with fenced locks. Nodes need scripts for it, and the user the right to the
 * queue and to its channel. See "place_lease" of quorumlock_config_set and quorumlock_event_position.
 * Gives QUORUMLOCK_OK, or QUORUMLOCK_CONFIG where the lock is neither plain nor fenced. */
quorumlock_result quorumlock_mutex_set_fair(quorumlock_mutex *mutex, int enabled);

/* Lets an owner take the lock again that it holds: an owner that is given, or the calling thread if `owner` is NULL.
 * Default: no owner may. Each of its guards is a level, and the lock is released with the last one, in whatever order
 * they go. A level sends nothing, unless the time to live of this mutex is longer than the one before or less than two
 * thirds of it remain: then the lock is extended first. When the lock is lost, its owner gets QUORUMLOCK_LEASE_LOST
 * until the last guard has gone. The guards may go to other threads. An attached lease is a lock of its own, and no
 * level. The mutex keeps the owner, which may be freed. What else is held excludes it: also a plain lock of the same
 * thread.
 * Gives QUORUMLOCK_OK, or QUORUMLOCK_CONFIG where the lock is neither plain nor fenced. */
quorumlock_result quorumlock_mutex_set_reentrant(quorumlock_mutex *mutex, const quorumlock_owner *owner);

/* Takes the lock. Blocks while another client holds it, for timeout_ms at most: 0 is one attempt, and a negative number
 * no limit. Fails when no majority has answered for "unavailable_after" of quorumlock_config_set. Threads that share a
 * client queue in the order of their calls. `cancel` may be NULL; otherwise it ends the wait from another thread.
 * Gives QUORUMLOCK_OK and a guard, or QUORUMLOCK_HELD when the time is over; or QUORUMLOCK_UNAVAILABLE, _CANCELLED,
 * _CONFIG, _ENTROPY, and nothing is held. */
quorumlock_result quorumlock_mutex_lock(
    const quorumlock_mutex *mutex, int64_t timeout_ms, const quorumlock_cancel_handle *cancel,
    quorumlock_guard **guard, quorumlock_error **error);

/* Makes one attempt, and waits for no holder and in no queue. Blocks for a node timeout at most, one more if
 * connections have to be made first, one more for a fenced lock, and two more for a permit.
 * Gives QUORUMLOCK_OK and a guard, or QUORUMLOCK_HELD; or QUORUMLOCK_UNAVAILABLE, _CONFIG, _ENTROPY. */
quorumlock_result quorumlock_mutex_try_lock(
    const quorumlock_mutex *mutex, quorumlock_guard **guard, quorumlock_error **error);

/* Takes the lock. Blocks until deadline_ms at the latest, by quorumlock_now_ms(); a time in the past is one attempt.
 * Otherwise as quorumlock_mutex_lock. */
quorumlock_result quorumlock_mutex_lock_deadline(
    const quorumlock_mutex *mutex, uint64_t deadline_ms, const quorumlock_cancel_handle *cancel,
    quorumlock_guard **guard, quorumlock_error **error);

/* Continues a lock that is already held: makes a guard of a lease. Asks no node and does not wait. The mutex's
 * settings for automatic extension apply. The lease is consumed, also when this fails, and must still be freed. To be
 * certain of the lock, extend it next.
 * Gives QUORUMLOCK_OK and a guard; or QUORUMLOCK_LEASE_LOST, _CONSUMED, _CONFIG (another resource). */
quorumlock_result quorumlock_mutex_attach(
    const quorumlock_mutex *mutex, quorumlock_lease *lease, quorumlock_guard **guard, quorumlock_error **error);

/* Which client has the lock now. Asks every node once and changes nothing; blocks until a majority of answers decides,
 * for a node timeout at most, and one more if connections have to be made. It may have changed when the answer is
 * there: it is for messages and operators. The user needs +get +pttl, for a fenced lock +get +time.
 * Gives QUORUMLOCK_OK and the holder, or QUORUMLOCK_NOT_HELD; or QUORUMLOCK_UNAVAILABLE, with the cause
 * QUORUMLOCK_CAUSE_NO_PERMISSION where the user may not ask, or _CONFIG. */
quorumlock_result quorumlock_mutex_holder(
    const quorumlock_mutex *mutex, quorumlock_holder **holder, quorumlock_error **error);

/* Frees the holder. Changes nothing of its lock. */
void quorumlock_holder_free(quorumlock_holder *holder);

/* All of it in one line, such as "billing@host7/4711, 9.99 s left, on 10.0.0.1:6379, 10.0.0.2:6379". */
quorumlock_str quorumlock_holder_message(const quorumlock_holder *holder);

/* What the holder's client calls itself. Empty if it has no label, or is of another library. */
quorumlock_str quorumlock_holder_label(const quorumlock_holder *holder);

/* How long a majority of nodes has the lock if it is neither released nor extended. If its keys have no expiry, the
 * greatest number of this type. */
uint64_t quorumlock_holder_remaining_ms(const quorumlock_holder *holder);

/* How many nodes have it: a majority at least, of those that had answered when one was found. */
size_t quorumlock_holder_node_count(const quorumlock_holder *holder);

/* The address of one of them, counted from 0. Empty if there are not so many. */
quorumlock_str quorumlock_holder_node(const quorumlock_holder *holder, size_t index);

/* ---- Cancelling ------------------------------------------------------------------------------------------------- */

/* A handle that has cancelled nothing. NULL if there is no memory. */
quorumlock_cancel_handle *quorumlock_cancel_handle_new(void);

/* Frees a handle. Cancels nothing; waits that use it continue. */
void quorumlock_cancel_handle_free(quorumlock_cancel_handle *cancel);

/* Ends all waits that use this handle, now and later. May be called again. In a child of fork: cancels nothing of the
 * parent. */
quorumlock_result quorumlock_cancel_handle_cancel(const quorumlock_cancel_handle *cancel);

/* 1 if it has been cancelled, otherwise 0. */
int quorumlock_cancel_handle_is_cancelled(const quorumlock_cancel_handle *cancel);

/* ---- Owner ------------------------------------------------------------------------------------------------------ */

/* An owner of reentrant locks that is no thread: a unit of work that moves between threads. It serves one thread at a
 * time: a second one that locks with it meanwhile gets QUORUMLOCK_BUSY. NULL if there is no memory. */
quorumlock_owner *quorumlock_owner_new(void);

/* Frees an owner. Releases nothing: its guards do. */
void quorumlock_owner_free(quorumlock_owner *owner);

/* ---- Guard ------------------------------------------------------------------------------------------------------ */

/* Frees a guard. If it holds its lock, the release is queued, and the call does not wait for answers; the outcome is
 * an event. May be the last call of the client: see quorumlock_client_free. In a child of fork: the lock stays held by
 * the parent. */
void quorumlock_guard_free(quorumlock_guard *guard);

/* The name of the resource. */
quorumlock_str quorumlock_guard_name(const quorumlock_guard *guard);

/* How long the lock may still be relied on, by the clock now. CHECK IT BEFORE EVERY STEP THAT MUST NOT BE DONE TWICE:
 * a guard cannot stop time. 0 after the lease has ended, when the guard holds no lock, while another thread makes a
 * lock to write one to read, and in a child of fork. Waits for nothing, also while another thread extends the lock or
 * is in a callback of that. */
uint64_t quorumlock_guard_remaining_ms(const quorumlock_guard *guard);

/* The check before every step that must not be done twice: whether the lock may be relied on for at least at_least_ms.
 * Pass the longest time that the step may take. Waits for nothing.
 * Gives QUORUMLOCK_OK, or QUORUMLOCK_NOT_HELD when quorumlock_guard_remaining_ms gives 0 because the guard holds no
 * lock; or QUORUMLOCK_LEASE_TOO_SHORT when less is left, _LEASE_LOST when the lock is lost. */
quorumlock_result quorumlock_guard_ensure(
    const quorumlock_guard *guard, uint64_t at_least_ms, quorumlock_error **error);

/* The number of this acquisition, greater than that of every acquisition before it and less than 2^53. Send it with
 * every write under the lock, and let the resource refuse smaller numbers than it has seen. In a database: UPDATE ...
 * SET ..., fence = :fence WHERE id = 42 AND fence <= :fence. It can still be read when the lock is gone. 0 if the lock
 * is not fenced, or is one to read: what a reader passes on may be of any writer before it. */
uint64_t quorumlock_guard_fencing_token(const quorumlock_guard *guard);

/* Which permit it is, from 0 on, see quorumlock_client_semaphore: no other holder has the same one meanwhile. It can
 * still be read when the permit is gone. 0 if it is no permit. */
uint64_t quorumlock_guard_slot(const quorumlock_guard *guard);

/* Releases the lock, and waits until a majority of nodes has answered, for a node timeout at most. The guard holds no
 * lock afterwards, whatever the result, and must still be freed.
 * Gives QUORUMLOCK_OK when the lock was held to the end, QUORUMLOCK_EXPIRED when it was not, QUORUMLOCK_NOT_HELD when
 * it was unlocked or detached before, QUORUMLOCK_STILL_HELD when it was a level of a reentrant lock and not the last,
 * or other threads of the client still read;
 * or QUORUMLOCK_UNAVAILABLE: too few nodes answered, the release has been sent to all that can be reached, and the lock
 * ends with its time to live at the latest; _BUSY. */
quorumlock_result quorumlock_guard_unlock(quorumlock_guard *guard, quorumlock_error **error);

/* Makes the lock last for at least ttl_ms from now on, and never for less than it did. Waits for the answers, for a
 * node timeout at most, and for another thread that extends or watches the lock, callbacks included. A failed extension
 * changes nothing, and no extension revives a lost lock.
 * Gives QUORUMLOCK_OK, QUORUMLOCK_LOST or QUORUMLOCK_NOT_HELD; or QUORUMLOCK_EXTENSION_FAILED: the old lease still
 * holds; _CONFIG, _BUSY. */
quorumlock_result quorumlock_guard_extend(quorumlock_guard *guard, uint64_t ttl_ms, quorumlock_error **error);

/* A descriptor for poll, select, epoll or an event loop. It becomes readable, and stays so, when the lock is lost: the
 * lease ends and could not be extended, or so many nodes do not have the key that no majority can hold it. That is
 * before the end of the validity if the lock is extended automatically, otherwise at the end. It belongs to the guard:
 * do not read from it, do not close it, and take it out of the event loop before the guard is freed, which closes it.
 * Every call for one guard gives the same. When the lock is released or detached first, it never becomes readable. A
 * child of fork inherits it, and it becomes readable there too, by a loss of the parent's lock: the child is to close
 * its copy, and not to watch it.
 * Gives QUORUMLOCK_OK or QUORUMLOCK_NOT_HELD; or QUORUMLOCK_UNAVAILABLE without descriptors or threads, _UNSUPPORTED
 * on Windows, _BUSY. */
quorumlock_result quorumlock_guard_lost_fd(quorumlock_guard *guard, int *descriptor, quorumlock_error **error);

/* Receives the loss of a lock. See convention 11. */
typedef void (*quorumlock_lost)(void *userdata);

/* Has `lost` called once with `userdata` when the descriptor of quorumlock_guard_lost_fd would become readable; at
 * once, if that time has passed. It runs on the client's thread, in quorumlock_guard_extend, or here. A guard can have
 * several. `release`, which may be NULL, is called with `userdata` in any case: when `lost` has returned; when it will
 * never be called, because the lock was released, detached or freed first; or at once if the result is not
 * QUORUMLOCK_OK. `lost` may be running on another thread while the lock is released here: what it uses must last until
 * `release`.
 * Gives QUORUMLOCK_OK or QUORUMLOCK_NOT_HELD; or QUORUMLOCK_UNAVAILABLE without threads, _BUSY. */
quorumlock_result quorumlock_guard_on_lost(
    quorumlock_guard *guard, quorumlock_lost lost, void *userdata, quorumlock_release release,
    quorumlock_error **error);

/* Makes a lock to write one to read, and extends it by the time to live of its mutex. No other writer comes in between.
 * If too few nodes answer it is one to read all the same, with its lease as before. The descriptor of
 * quorumlock_guard_lost_fd stays; callbacks of quorumlock_guard_on_lost end, as by a release; a fencing token is 0 from
 * then on. There is no way back.
 * Gives QUORUMLOCK_OK or QUORUMLOCK_NOT_HELD; or QUORUMLOCK_LEASE_LOST: the guard holds no lock, and the descriptor is
 * readable; _CONFIG when it is not held to write, _BUSY. */
quorumlock_result quorumlock_guard_downgrade(quorumlock_guard *guard, quorumlock_error **error);

/* Separates the lock from its guard, and gives what another thread, process or program needs to continue it. Sends
 * nothing; if an automatic extension is under way, waits for its answers, two node timeouts at most. The guard holds
 * no lock afterwards, and must still be freed.
 * Gives QUORUMLOCK_OK and a lease, or QUORUMLOCK_NOT_HELD; or _CONFIG while other guards of the client share the lock,
 * as levels or as readers: that ends this one. Or _BUSY. */
quorumlock_result quorumlock_guard_detach(quorumlock_guard *guard, quorumlock_lease **lease, quorumlock_error **error);

/* ---- Lease ------------------------------------------------------------------------------------------------------ */

/* Frees a lease. RELEASES NOTHING: the lock stays held until a program attaches the lease and releases it, or it
 * expires. */
void quorumlock_lease_free(quorumlock_lease *lease);

/* The lock's key on the nodes: the marker of a fenced or read-write lock ("quorumlock-fence:", "quorumlock-rw:"), the
 * client's prefix and the name of the resource; of a set, the first of its keys. */
quorumlock_str quorumlock_lease_key(const quorumlock_lease *lease);

/* The time to live that was last asked for. */
uint64_t quorumlock_lease_ttl_ms(const quorumlock_lease *lease);

/* The number of the acquisition, see quorumlock_guard_fencing_token. 0 if the lock is not fenced, or is one to read. */
uint64_t quorumlock_lease_fencing_token(const quorumlock_lease *lease);

/* When the lock ends by the wall clock: milliseconds since 1970. */
uint64_t quorumlock_lease_end_unix_ms(const quorumlock_lease *lease);

/* How long the lock may still be relied on. 0 after its end, and when the lease is consumed. */
uint64_t quorumlock_lease_remaining_ms(const quorumlock_lease *lease);

/* Makes a guard of a lease, with the mutex's default settings and the lease's time to live. Otherwise as
 * quorumlock_mutex_attach.
 * Gives QUORUMLOCK_OK and a guard; or QUORUMLOCK_LEASE_LOST, _CONSUMED, _CONFIG (another prefix). */
quorumlock_result quorumlock_client_attach(
    const quorumlock_client *client, quorumlock_lease *lease, quorumlock_guard **guard, quorumlock_error **error);

/* The lease as one line of text, for another process: printable ASCII without blanks, quotes or a line feed. The lease
 * is consumed, and must still be freed. As text, it ends by the wall clock: the clocks of both machines must agree.
 * Attach it once: after two attaches, two guards rely on the same lock.
 * Gives QUORUMLOCK_OK and a secret; or QUORUMLOCK_CONSUMED. */
quorumlock_result quorumlock_lease_into_text(
    quorumlock_lease *lease, quorumlock_secret **secret, quorumlock_error **error);

/* Reads such a text: exactly that, without a line feed behind it. Whether the lease still lasts is checked when it is
 * attached.
 * Gives QUORUMLOCK_OK and a lease; or QUORUMLOCK_CONFIG for a damaged text, one of a later version, or another text,
 * which is never quoted. */
quorumlock_result quorumlock_lease_from_text(
    const char *text, size_t text_length, quorumlock_lease **lease, quorumlock_error **error);

/* The text. ITS READER HAS THE LOCK: hand it over by a pipe, or by a file or variable that only the receiver can read,
 * not by a command line. */
quorumlock_str quorumlock_secret_text(const quorumlock_secret *secret);

/* Overwrites the text, and frees it. */
void quorumlock_secret_free(quorumlock_secret *secret);

/* ---- Nodes ------------------------------------------------------------------------------------------------------ */

/* The state of a node, for one client. More may follow in later versions. */
typedef enum quorumlock_node_state {
    /* There is no such node. */
    QUORUMLOCK_NODE_NONE = 0,
    /* Not contacted yet. Connections are made when a lock is needed. */
    QUORUMLOCK_NODE_UNKNOWN = 1,
    /* It votes. */
    QUORUMLOCK_NODE_VOTING = 2,
    /* It does not respond. It is tried again with growing delays, without limit. */
    QUORUMLOCK_NODE_DOWN = 3,
    /* It answers, and does not vote: a replica, a wrong password, the same server as another node; or it answered the
     * last attempt with an error that does not pass by itself, such as out of memory or no permission. */
    QUORUMLOCK_NODE_REJECTED = 4,
    /* It answers, and does not vote yet, because it may have forgotten locks. */
    QUORUMLOCK_NODE_QUARANTINED = 5
} quorumlock_node_state;

/* The replication role of a server. More may follow in later versions. */
typedef enum quorumlock_role {
    /* Not contacted yet, or the server withholds it. */
    QUORUMLOCK_ROLE_UNKNOWN = 0,
    QUORUMLOCK_ROLE_MASTER = 1,
    QUORUMLOCK_ROLE_REPLICA = 2
} quorumlock_role;

/* The last known state of the client's nodes, in the order in which they were named: a copy that does not change. Asks
 * no node and waits for nothing.
 * Gives QUORUMLOCK_OK and the nodes. */
quorumlock_result quorumlock_client_nodes(
    const quorumlock_client *client, quorumlock_nodes **nodes, quorumlock_error **error);

/* Makes all connections, asks each node whether it may vote, and waits for all of them, for timeout_ms at most: at the
 * start of a program, or as a health check. Each node is tried once. Without it, the first lock makes the connections.
 * Gives QUORUMLOCK_OK and the nodes; or QUORUMLOCK_UNAVAILABLE when fewer than a majority can vote now, with the cause
 * at each of the others (quorumlock_client_nodes still gives the nodes). */
quorumlock_result quorumlock_client_connect(
    const quorumlock_client *client, uint64_t timeout_ms, quorumlock_nodes **nodes, quorumlock_error **error);

/* Frees the copy. */
void quorumlock_nodes_free(quorumlock_nodes *nodes);

/* How many nodes there are. */
size_t quorumlock_nodes_count(const quorumlock_nodes *nodes);

/* The state of one of them, counted from 0. */
quorumlock_node_state quorumlock_nodes_state(const quorumlock_nodes *nodes, size_t index);

/* All of it in one line, such as "10.0.0.3:6379: voting, known for 12 s, votes counted for 3 d, Redis 7.0.15". */
quorumlock_str quorumlock_nodes_message(const quorumlock_nodes *nodes, size_t index);

/* Its address: "host:port", or "unix:" and a path. */
quorumlock_str quorumlock_nodes_address(const quorumlock_nodes *nodes, size_t index);

/* How long it has been in this state, since the client detected it. */
uint64_t quorumlock_nodes_state_age_ms(const quorumlock_nodes *nodes, size_t index);

/* How long it does not vote yet, if it is in quarantine, otherwise 0. */
uint64_t quorumlock_nodes_quarantine_ms(const quorumlock_nodes *nodes, size_t index);

/* For how long its votes have counted, for programs that have just started, too, by what it remembers of itself. 0 if
 * they do not count, or where it tells nothing. */
uint64_t quorumlock_nodes_counted_ms(const quorumlock_nodes *nodes, size_t index);

/* 1 if there is a connection to it, otherwise 0. A node that votes may have none: servers close idle ones. */
int quorumlock_nodes_is_connected(const quorumlock_nodes *nodes, size_t index);

/* 1 if it is declared durable and its INFO does not contradict that (aof_enabled:0), otherwise 0. */
int quorumlock_nodes_is_durable(const quorumlock_nodes *nodes, size_t index);

/* The server and its version, such as "Redis 7.0.15". Empty before the first contact, or when the server withholds
 * it. */
quorumlock_str quorumlock_nodes_server(const quorumlock_nodes *nodes, size_t index);

/* The first eight digits of its run id, which changes with each restart. Empty before the first contact, or when the
 * server withholds it: then its restarts are not detected. */
quorumlock_str quorumlock_nodes_run_id(const quorumlock_nodes *nodes, size_t index);

/* Whether it is a master, as it should be. QUORUMLOCK_ROLE_UNKNOWN before the first contact, or when the server
 * withholds it. */
quorumlock_role quorumlock_nodes_role(const quorumlock_nodes *nodes, size_t index);

/* The policy by which it evicts keys when its memory is full, if it does: then it may forget a lock. Otherwise
 * empty. */
quorumlock_str quorumlock_nodes_eviction(const quorumlock_nodes *nodes, size_t index);

/* Its last fault. NULL if it never failed. */
const quorumlock_fault *quorumlock_nodes_last_fault(const quorumlock_nodes *nodes, size_t index);

/* How many replies to commands about locks it has sent since the client was made. */
uint64_t quorumlock_nodes_latency_count(const quorumlock_nodes *nodes, size_t index);

/* The time that half of these replies did not exceed, from when the command was queued: never too small, and at most a
 * quarter too large. */
uint64_t quorumlock_nodes_latency_p50_us(const quorumlock_nodes *nodes, size_t index);

/* The same for 99 of 100. */
uint64_t quorumlock_nodes_latency_p99_us(const quorumlock_nodes *nodes, size_t index);

/* The longest of these times. */
uint64_t quorumlock_nodes_latency_max_us(const quorumlock_nodes *nodes, size_t index);

/* In how many ways, by phase and cause, it has cost a call its vote since the client was made. */
size_t quorumlock_nodes_fault_kinds(const quorumlock_nodes *nodes, size_t index);

/* One of these ways, counted from 0 in the order in which they first occurred. NULL if there are not so many. */
const quorumlock_fault *quorumlock_nodes_fault(const quorumlock_nodes *nodes, size_t index, size_t kind);

/* How often it occurred. */
uint64_t quorumlock_nodes_fault_count(const quorumlock_nodes *nodes, size_t index, size_t kind);

/* ---- Events ----------------------------------------------------------------------------------------------------- */

/* The kind of an event. More may follow in later versions: ignore unknown ones. Each lists what it has besides a
 * message; functions that belong to other kinds give 0 or an empty text. */
typedef enum quorumlock_kind {
    QUORUMLOCK_EVENT_NONE = 0,
    /* A lock was taken, and its guard is about to be returned: name, waited_us, attempts (0 if the call has waited to
     * read, and shares what another thread has taken: that is released once), round_trips, has_waited, position,
     * told, unasked, challenges. */
    QUORUMLOCK_EVENT_ACQUIRED = 1,
    /* An attempt was lost, and undone: name, attempts (which it was), granted, refused, faults. */
    QUORUMLOCK_EVENT_ATTEMPT_LOST = 2,
    /* A lock was extended: name, ttl_ms, is_automatic. */
    QUORUMLOCK_EVENT_EXTENDED = 3,
    /* Too few nodes answered an extension, and the lock is still held: name, is_automatic, remaining_ms, faults. */
    QUORUMLOCK_EVENT_EXTENSION_FAILED = 4,
    /* A lock was lost: so many nodes do not have its key that no majority can hold it. Has name, held_us. */
    QUORUMLOCK_EVENT_LOST_KEY = 5,
    /* A lock was lost: its lease expired. Has name, held_us. */
    QUORUMLOCK_EVENT_LOST_TIME = 6,
    /* A node does not respond any more, or answers attempts with an error: addresses (one), faults (one). */
    QUORUMLOCK_EVENT_NODE_DOWN = 7,
    /* A node votes, for the first time or again: addresses (one). */
    QUORUMLOCK_EVENT_NODE_UP = 8,
    /* Too few nodes answered a release: name, is_freed, held_us, faults. */
    QUORUMLOCK_EVENT_RELEASE_FAILED = 9,
    /* A lock was released in time: name, is_freed, held_us. */
    QUORUMLOCK_EVENT_RELEASED = 10,
    /* A lock was released too late: name, is_freed, held_us. */
    QUORUMLOCK_EVENT_EXPIRED = 11,
    /* The key of a held lock was set again on nodes that had lost it: name, addresses. */
    QUORUMLOCK_EVENT_REPAIRED = 12,
    /* A node has a limit of memory, and evicts keys when it is full: addresses (one), policy. */
    QUORUMLOCK_EVENT_NODE_MAY_EVICT = 13,
    /* A node may have forgotten locks, and does not vote for a while: addresses (one), remaining_ms. */
    QUORUMLOCK_EVENT_NODE_QUARANTINED = 14,
    /* A node that was in quarantine votes again: addresses (one). */
    QUORUMLOCK_EVENT_QUARANTINE_ENDED = 15,
    /* A node denies PUBLISH: other clients are not notified of releases. Locks work: addresses (one), faults (one). */
    QUORUMLOCK_EVENT_PUBLISH_REFUSED = 16,
    /* A node denies SUBSCRIBE: this client is not notified. Locks work: addresses (one), faults (one). */
    QUORUMLOCK_EVENT_SUBSCRIBE_REFUSED = 17,
    /* A key that has no expiry holds a lock, or a slot, on a majority: name, addresses. */
    QUORUMLOCK_EVENT_KEY_WITHOUT_EXPIRY = 18,
    /* Events were dropped, because the observer is too slow: dropped. */
    QUORUMLOCK_EVENT_EVENTS_DROPPED = 19,
    /* A node is declared durable and appends nothing to disk: the declaration is ignored. Addresses (one). */
    QUORUMLOCK_EVENT_NODE_NOT_DURABLE = 20,
    /* A call for a lock begins to wait. Once for each call, and before its end: name. */
    QUORUMLOCK_EVENT_WAITING = 21,
    /* A call for a lock ended without it. Once for each call that does not end in ACQUIRED, errors included, unless it
     * gave QUORUMLOCK_FORKED: name, reason, waited_us, attempts (0 if no node was asked), has_waited, faults. */
    QUORUMLOCK_EVENT_GAVE_UP = 22,
    /* A call begins to wait for a lock that its own thread has taken by the same client, and that is neither released
     * nor detached: unless the guard was handed to another thread, it waits until the lease ends, and with a watchdog
     * for ever. Once for each call, after WAITING: name (of a set, of the lock that the thread has), remaining_ms. */
    QUORUMLOCK_EVENT_WAITING_FOR_ITSELF = 23,
    /* A program has noted another max_ttl at a node: after a loss of keys, all programs wait for the longest. Once
     * for each node and difference, and the same for the next two. Locks work: addresses (one), ttl_ms. */
    QUORUMLOCK_EVENT_MAX_TTL_DIFFERS = 24,
    /* A program has noted at a node that it has another number of nodes. Programs whose nodes differ may hold a lock
     * at the same time: addresses (one), nodes. */
    QUORUMLOCK_EVENT_NODE_COUNT_DIFFERS = 25,
    /* The user may not read or write the key of a node, "quorumlock-node:" and the prefix: losses of keys are detected
     * only after this client has connected to the node. Locks work: addresses (one). */
    QUORUMLOCK_EVENT_NODE_KEY_DENIED = 26,
    /* A node could not be logged in to with new credentials, and those before stay: addresses (one), faults (one). */
    QUORUMLOCK_EVENT_CREDENTIALS_FAILED = 27,
    /* A server in cluster mode has named another one as the master of its shard, and connections lead there from now
     * on: addresses (two: the node as its URL has it, and the master). */
    QUORUMLOCK_EVENT_NODE_MOVED = 28
} quorumlock_kind;

/* Why a call for a lock ended without it. More may follow in later versions. */
typedef enum quorumlock_reason {
    QUORUMLOCK_REASON_NONE = 0,
    /* The wait was cancelled. */
    QUORUMLOCK_REASON_CANCELLED = 1,
    /* The call could not be made, and asked no node: invalid settings, no entropy, no thread for the watchdog. */
    QUORUMLOCK_REASON_FAILED = 2,
    /* A single attempt found that another client holds the lock. */
    QUORUMLOCK_REASON_HELD = 3,
    /* The limit of the wait passed while the lock was held. */
    QUORUMLOCK_REASON_TIMED_OUT = 4,
    /* A majority granted the lock, but only after its lease had ended. */
    QUORUMLOCK_REASON_TOO_LATE = 5,
    /* Too few nodes could answer, or the lock is held by a key without expiry. */
    QUORUMLOCK_REASON_UNAVAILABLE = 6,
    /* The client was shut down. */
    QUORUMLOCK_REASON_SHUT_DOWN = 7
} quorumlock_reason;

/* How serious an event is. A greater number is more serious. */
typedef enum quorumlock_severity {
    QUORUMLOCK_SEVERITY_NONE = 0,
    /* Ordinary work. */
    QUORUMLOCK_SEVERITY_DEBUG = 1,
    /* A change for the better, or a limit that the program has set. */
    QUORUMLOCK_SEVERITY_INFO = 2,
    /* Locks work. Something fails that an operator can put right. */
    QUORUMLOCK_SEVERITY_WARNING = 3,
    /* A call failed, or a program may have worked without its lock. */
    QUORUMLOCK_SEVERITY_ERROR = 4
} quorumlock_severity;

/* The kind of the event. This and all functions of events may be called within the callback only. */
quorumlock_kind quorumlock_event_kind(const quorumlock_event *event);

/* A word for labels and JSON that never changes, such as "acquired". Some kinds share one: both kinds of losses are
 * "lost", both ends of a release "released". */
quorumlock_str quorumlock_event_code(const quorumlock_event *event);

/* The event in one line, for a log. */
quorumlock_str quorumlock_event_message(const quorumlock_event *event);

/* The name of the resource. Empty for an event of nodes. */
quorumlock_str quorumlock_event_name(const quorumlock_event *event);

/* How many nodes it names. */
size_t quorumlock_event_address_count(const quorumlock_event *event);

/* The address of one of them, counted from 0: "host:port", or "unix:" and a path. */
quorumlock_str quorumlock_event_address(const quorumlock_event *event, size_t index);

/* How many nodes gave no usable answer. */
size_t quorumlock_event_fault_count(const quorumlock_event *event);

/* One of them, counted from 0. It lasts until the callback returns. */
const quorumlock_fault *quorumlock_event_fault(const quorumlock_event *event, size_t index);

/* The time from the call to the answer that won the lock, or to the end of the call, in microseconds. */
uint64_t quorumlock_event_waited_us(const quorumlock_event *event);

/* 1 if the call has waited, so that QUORUMLOCK_EVENT_WAITING came before; otherwise 0. */
int quorumlock_event_has_waited(const quorumlock_event *event);

/* For how long the lock was held, in microseconds: from the beginning of the attempt that took it, or from when its
 * lease was attached, until it was released or found lost. */
uint64_t quorumlock_event_held_us(const quorumlock_event *event);

/* Why the call ended without the lock. */
quorumlock_reason quorumlock_event_reason(const quorumlock_event *event);

/* How serious it is. Every event has a severity. */
quorumlock_severity quorumlock_event_severity(const quorumlock_event *event);

/* How many attempts the call has made so far. */
uint32_t quorumlock_event_attempts(const quorumlock_event *event);

/* How many round trips the winning attempt took: 1, or 2 where the nodes of a fenced lock had to agree on one number,
 * or up to 3 for a permit whose first slot was held. 0 without an attempt. */
uint32_t quorumlock_event_round_trips(const quorumlock_event *event);

/* The position in the queue of the lock when the call began to wait there: 1 was the next. 0 for a lock that was
 * free. */
uint32_t quorumlock_event_position(const quorumlock_event *event);

/* How many attempts followed a message of the nodes that the lock may be free. */
uint32_t quorumlock_event_told(const quorumlock_event *event);

/* How many attempts followed no message, but a wait of place_lease or the end of the holder's time to live. */
uint32_t quorumlock_event_unasked(const quorumlock_event *event);

/* How many attempts challenged the first call in the queue, which had let this one wait for place_lease. */
uint32_t quorumlock_event_challenges(const quorumlock_event *event);

/* How many nodes granted the lock. */
size_t quorumlock_event_granted(const quorumlock_event *event);

/* How many nodes answered that another client has the lock. */
size_t quorumlock_event_refused(const quorumlock_event *event);

/* How many nodes another program has. */
size_t quorumlock_event_nodes(const quorumlock_event *event);

/* The new time to live, or the max_ttl of another program. */
uint64_t quorumlock_event_ttl_ms(const quorumlock_event *event);

/* What was left of the lease, or of the quarantine. */
uint64_t quorumlock_event_remaining_ms(const quorumlock_event *event);

/* The policy by which the node evicts keys. */
quorumlock_str quorumlock_event_policy(const quorumlock_event *event);

/* How many events were dropped since the last such event. */
uint64_t quorumlock_event_dropped(const quorumlock_event *event);

/* 1 if it was an automatic extension, 0 if one by quorumlock_guard_extend. */
int quorumlock_event_is_automatic(const quorumlock_event *event);

/* 1 if the guard was freed while it held the lock, 0 if it was unlocked. */
int quorumlock_event_is_freed(const quorumlock_event *event);

#ifdef __cplusplus
}
#endif

#endif
