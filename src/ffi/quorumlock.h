/*
 * quorumlock: a distributed lock over N independent Redis or Valkey masters, for threaded programs.
 *
 * Threads of any number of programs take turns with a resource. All nodes are asked at once, a majority must agree,
 * and nobody waits for the others. A lock is a lease: it ends when its guard is unlocked or freed, or with its time to
 * live, whatever became of its holder. Nothing here needs an event loop or a thread of its own; a thread is started
 * for locks that are extended automatically or watched for their loss, one for each client.
 *
 *     quorumlock_config -> quorumlock_client -> quorumlock_mutex -> quorumlock_guard -> quorumlock_lease
 *      nodes, settings      connections          one resource        the lock, taken     on its way elsewhere
 *
 * This file is written by hand and checked by tests: it is the reference for programs in C, C++, and whatever else can
 * call C. C99 will do. What the lock promises, and what no lease can, is said in README.md; read that first.
 *
 * Conventions
 *
 * 1. Handles are opaque. What a function hands out is owned by the caller until it is given back to the `_free` of its
 *    type, once, in any order: a client may be freed before its guards, a config as soon as the client is made. A
 *    handle outlives the calls that use it: a callback may free the very handle in whose call it runs. `_free` of NULL
 *    does nothing. As with free(), a handle that is used, or freed again, after its `_free` is undefined behaviour; so
 *    is one that another thread begins to use meanwhile.
 * 2. Results are numbers with fixed meanings, which are never given to anything else: see quorumlock_result. Below 100
 *    a call did what it is for, and the number is its answer. From 100 on it did not.
 * 3. Outputs are the last arguments. They are written when the call has succeeded (QUORUMLOCK_OK), and otherwise left
 *    alone.
 * 4. `error` is the very last one. It may be NULL. It is written if and only if the result is 100 or more, with a new
 *    quorumlock_error that is the caller's to free.
 * 5. NULL where a handle, a text or an output must stand gives QUORUMLOCK_NULL_POINTER, and does nothing else. Where
 *    NULL is allowed, it is said.
 * 6. Texts are a pointer and a length in bytes, UTF-8, without a NUL at their end; NUL bytes inside are like any
 *    other. More than 1 MiB is refused before it is read (QUORUMLOCK_TOO_LONG). Texts that are returned belong to the
 *    handle that they were asked of, and last as long.
 * 7. Times are whole milliseconds (`_ms`), and microseconds where the name says `_us`. What is left is rounded down.
 * 8. Any thread may call any function at any time, with handles made by any other thread. Nothing depends on the
 *    thread: a lock that one thread took another may unlock.
 * 9. Nothing here is async-signal-safe: call none of it in a signal handler. Signals with and without SA_RESTART
 *    disturb no call. The library sends none, SIGPIPE included, installs no handler, and its threads block all
 *    signals.
 *     pthread_cancel() of a thread that is in a call here takes effect at the thread's next cancellation point after the
 *     call has returned, with its outputs written: what a call has returned is the thread's to free, by
 *     pthread_cleanup_push() for one. To end a wait early, use a quorumlock_cancel_handle. (Linux, with the default,
 *     PTHREAD_CANCEL_DEFERRED.)
 * 10. After fork(), what was made before belongs to the parent. In the child its functions give QUORUMLOCK_FORKED and
 *     touch no connection, and a lock stays the parent's. A config, an error, a lease, a secret and a copy of nodes
 *     are plain memory: the child has a copy of its own, and can build its own client from the config. The child may
 *     free what it has inherited or leave it; the callbacks of inherited clients and guards are not called there, nor
 *     their `release`.
 * 11. Callbacks run on the thread in whose call a thing was found out, or on the client's thread; never while the
 *     library holds a lock of its own. They may call anything here. They must be quick, must not throw, longjmp or end
 *     their thread, and must not wait for a lock that their thread holds. One call tells an observer at most 32 events
 *     that other calls have left, after its own; a wait does so after each attempt.
 * 12. dlclose() after all handles are freed leaves no thread and no descriptor. The code stays in memory: a look-up of
 *     a host name may still be running, and threads may have destructors to run.
 *
 * A panic, which is a bug in the library, never unwinds into the program: it becomes QUORUMLOCK_PANIC.
 */
#ifndef QUORUMLOCK_H
#define QUORUMLOCK_H

#include <stddef.h>
#include <stdint.h>

/* The version of this header. quorumlock_version_number() tells that of the library. */
#define QUORUMLOCK_VERSION_MAJOR 0
#define QUORUMLOCK_VERSION_MINOR 1
#define QUORUMLOCK_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* What came of a call. */
typedef enum quorumlock_result {
    /* Below 100: answers. */

    /* Done: taken, released, extended, written. */
    QUORUMLOCK_OK = 0,
    /* Somebody else has the lock. */
    QUORUMLOCK_HELD = 1,
    /* The release came too late: the lease had ended, or so many nodes had not the key that no majority can have held
     * it. Another client may have had the lock since. A program that relies on having been alone must check that now. */
    QUORUMLOCK_EXPIRED = 2,
    /* The lock is lost, and cannot be extended: the lease has ended, or a majority of nodes says that it is not
     * ours. */
    QUORUMLOCK_LOST = 3,
    /* The guard holds no lock any more: it was unlocked or detached before. */
    QUORUMLOCK_NOT_HELD = 4,

    /* From 100: it could not be done, for a reason outside the call. */

    /* A setting, a node's URL, a name or a time to live cannot be used; the message says which. */
    QUORUMLOCK_CONFIG = 100,
    /* Fewer than a majority of nodes could answer, or answered too late. Whether the lock is held is not known. */
    QUORUMLOCK_UNAVAILABLE = 101,
    /* The lease that was to be attached has ended, or the lock does not last as long as quorumlock_guard_ensure was
     * told. */
    QUORUMLOCK_LEASE_LOST = 102,
    /* The wait was cancelled. Nothing is held. */
    QUORUMLOCK_CANCELLED = 103,
    /* The operating system gave no random bytes. Nothing was sent. */
    QUORUMLOCK_ENTROPY = 104,
    /* This process is a child made by fork, and the handle is its parent's. Nothing was touched. */
    QUORUMLOCK_FORKED = 105,
    /* Too few nodes answered an extension. The lock is still held for what is left of its old lease. */
    QUORUMLOCK_EXTENSION_FAILED = 106,

    /* From 200: the call makes no sense. Nothing was done. */

    /* NULL where something must stand. */
    QUORUMLOCK_NULL_POINTER = 200,
    /* The text is not UTF-8. */
    QUORUMLOCK_NOT_UTF8 = 201,
    /* The text is longer than 1 MiB: a length that is no length, most likely. */
    QUORUMLOCK_TOO_LONG = 202,
    /* A callback from within quorumlock_guard_extend or quorumlock_guard_on_lost has called a function with the very
     * guard that they are at work on. */
    QUORUMLOCK_BUSY = 203,
    /* The lease was attached, or made into text, before. */
    QUORUMLOCK_USED_UP = 204,
    /* This system has nothing of the kind. */
    QUORUMLOCK_UNSUPPORTED = 205,
    /* The number stands for nothing here. */
    QUORUMLOCK_NO_SUCH_NUMBER = 206,

    /* A bug in the library. */
    QUORUMLOCK_PANIC = 300
} quorumlock_result;

/* A text: not ended by a NUL, and never NULL. printf("%.*s", (int)text.length, text.data) */
typedef struct quorumlock_str {
    const char *data;
    size_t length;
} quorumlock_str;

/* The nodes and settings of a client to be. */
typedef struct quorumlock_config quorumlock_config;
/* The nodes of one quorum, and the connections to them. One for the whole program will do. */
typedef struct quorumlock_client quorumlock_client;
/* The lock of one resource. */
typedef struct quorumlock_mutex quorumlock_mutex;
/* Ends waits from another thread. */
typedef struct quorumlock_cancel_handle quorumlock_cancel_handle;
/* A lock that was taken. */
typedef struct quorumlock_guard quorumlock_guard;
/* A held lock without a guard, on its way to another thread or process. */
typedef struct quorumlock_lease quorumlock_lease;
/* A lease as text. Who has it has the lock. */
typedef struct quorumlock_secret quorumlock_secret;
/* Why a call failed. */
typedef struct quorumlock_error quorumlock_error;
/* A node that gave no usable answer, and why. Belongs to an error or an event, and lasts as long. */
typedef struct quorumlock_fault quorumlock_fault;
/* How the nodes of a client looked when they were asked for. */
typedef struct quorumlock_nodes quorumlock_nodes;
/* Something that happened. Lasts until the callback returns that it was given to. */
typedef struct quorumlock_event quorumlock_event;

/* ---- Version and time ------------------------------------------------------------------------------------------- */

/* The version of the library, such as "0.1.0". Lasts for ever.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_str quorumlock_version(void);

/* The version as a number: major * 65536 + minor * 256 + patch.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
uint32_t quorumlock_version_number(void);

/* The clock that deadlines are told by: milliseconds of CLOCK_MONOTONIC, where there is one. It never runs backwards.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
uint64_t quorumlock_now_ms(void);

/* A result in a few words, such as "held by another client"; "unknown result" for a number that is none. Lasts for
 * ever.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_str quorumlock_result_text(int result);

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

/* How far a node had come when it failed. More may follow in later versions. */
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
    /* The user or the password was refused, or one is needed and none was given. */
    QUORUMLOCK_CAUSE_AUTH = 1,
    /* Too many commands are waiting for this node; it gets no more until it catches up. */
    QUORUMLOCK_CAUSE_BACKLOG = 2,
    /* The node closed or reset the connection. */
    QUORUMLOCK_CAUSE_CLOSED = 3,
    /* The node is part of a Redis Cluster. */
    QUORUMLOCK_CAUSE_CLUSTER_MODE = 4,
    /* The database number of the URL does not exist on the node. */
    QUORUMLOCK_CAUSE_DATABASE = 5,
    /* The URL leads to the same server as another one: quorumlock_fault_number() is that one's index. */
    QUORUMLOCK_CAUSE_DUPLICATE = 6,
    /* The node is loading its data. */
    QUORUMLOCK_CAUSE_LOADING = 7,
    /* The user may not run the command or touch the key. */
    QUORUMLOCK_CAUSE_NO_PERMISSION = 8,
    /* The node is a replica. */
    QUORUMLOCK_CAUSE_NOT_MASTER = 9,
    /* The node is out of memory. */
    QUORUMLOCK_CAUSE_OUT_OF_MEMORY = 10,
    /* The node's bytes are not what a Redis server answers. */
    QUORUMLOCK_CAUSE_PROTOCOL = 11,
    /* The node restarted, or was a replica, and may have lost locks: it does not count yet. */
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
    /* What stands under the key was not written by a fenced lock. It is left as it is. */
    QUORUMLOCK_CAUSE_FOREIGN = 21,
    /* The node runs no scripts, or none for this user, and a fenced lock needs them. */
    QUORUMLOCK_CAUSE_NO_SCRIPTS = 22,
    /* The number of a fenced lock on this node is more than a day ahead of the clock of the node or of this machine. The
     * node does not count for this lock. If all nodes say so, check the clock of this machine. */
    QUORUMLOCK_CAUSE_FENCE_AHEAD = 23,
    /* The lock is held by a key that has no expiry: it is never freed by itself. */
    QUORUMLOCK_CAUSE_NO_EXPIRY = 24
} quorumlock_cause;

/* Frees an error, its texts and its faults. NULL is allowed.
 * Any thread. In a child of fork: frees the child's copy. Not in a signal handler. */
void quorumlock_error_free(quorumlock_error *error);

/* The result that the error came with. QUORUMLOCK_OK for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_result quorumlock_error_result(const quorumlock_error *error);

/* What went wrong, in one line, each failed node included. Never holds a password, an owner token, a full URL or text
 * from a server. Empty for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_str quorumlock_error_message(const quorumlock_error *error);

/* 1 when trying again cannot help until something is changed, otherwise 0: the program, its configuration, a lease
 * that has ended, or so many nodes with a fault that time does not cure that the others are no majority. Such faults
 * are QUORUMLOCK_CAUSE_AUTH, _CLUSTER_MODE, _DATABASE, _DUPLICATE, _NO_EXPIRY, _NO_PERMISSION, _NO_SCRIPTS,
 * _NOT_MASTER and _READ_ONLY. 0 for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
int quorumlock_error_is_permanent(const quorumlock_error *error);

/* How many nodes gave no usable answer. 0 for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
size_t quorumlock_error_fault_count(const quorumlock_error *error);

/* One of them, counted from 0; in the order in which the nodes were named. NULL when there is none, or for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
const quorumlock_fault *quorumlock_error_fault(const quorumlock_error *error, size_t index);

/* The address of the node: "host:port", or "unix:" and a path. Empty for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_str quorumlock_fault_address(const quorumlock_fault *fault);

/* How far the node had come. QUORUMLOCK_PHASE_NONE for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_phase quorumlock_fault_phase(const quorumlock_fault *fault);

/* What went wrong there. QUORUMLOCK_CAUSE_NONE for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_cause quorumlock_fault_cause(const quorumlock_fault *fault);

/* The number that belongs to the cause, if one does, and otherwise -1: see QUORUMLOCK_CAUSE_DUPLICATE and _SYSTEM.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
int64_t quorumlock_fault_number(const quorumlock_fault *fault);

/* Address, cause and phase in one line, such as "10.0.0.3:6379: no reply within 100 ms (node_timeout)". Empty for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_str quorumlock_fault_message(const quorumlock_fault *fault);

/* ---- Configuration ---------------------------------------------------------------------------------------------- */

/* A configuration without nodes and with defaults for the rest. NULL only if there is no memory. What is set is
 * checked when a client is made of it.
 * Any thread. In a child of fork: works. Not in a signal handler. */
quorumlock_config *quorumlock_config_new(void);

/* Frees a configuration. Clients that were made of it are not affected. NULL is allowed.
 * Any thread. In a child of fork: frees the child's copy. Not in a signal handler. */
void quorumlock_config_free(quorumlock_config *config);

/* Adds a node, an independent Redis or Valkey master: "redis://[user:password@]host[:port][/database]" or
 * "unix://[user:password@]path[?db=database]". All clients of a lock must name the same nodes. Three or five make a
 * sound quorum; at most 64. The parameter "durable=true" declares the node durable.
 * Any thread. In a child of fork: changes the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_config_add_node(quorumlock_config *config, const char *url, size_t url_length);

/* Adds a node that keeps every write it has confirmed, through restarts and crashes: "appendonly yes" and "appendfsync
 * always". It counts at once after a restart. A node whose INFO says aof_enabled:0 contradicts this, and the
 * declaration is ignored; appendfsync cannot be checked.
 * Any thread. In a child of fork: changes the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_config_add_durable_node(quorumlock_config *config, const char *url, size_t url_length);

/* What is put before the name of each resource to make its key. Default: nothing.
 * Any thread. In a child of fork: changes the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_config_set_prefix(quorumlock_config *config, const char *prefix, size_t prefix_length);

/* How long each node has to answer an attempt: longer than a round trip. An attempt that has to connect to nodes first
 * has the same time again for that. Default: 100. At least 1.
 * Any thread. In a child of fork: changes the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_config_set_node_timeout_ms(quorumlock_config *config, uint64_t timeout_ms);

/* By which part of a time to live clocks may disagree; a lease is shorter by it, and by 2 ms. Default: 0.01. At least
 * 0, less than 1.
 * Any thread. In a child of fork: changes the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_config_set_drift_factor(quorumlock_config *config, double factor);

/* The shortest and the longest delay between two attempts of a thread that waits. Default: 2 and 250. At least 1.
 * Any thread. In a child of fork: changes the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_config_set_retry_delay_ms(
    quorumlock_config *config, uint64_t shortest_ms, uint64_t longest_ms);

/* For how long quorumlock_mutex_lock goes on when no majority of nodes answers, and any wait when so many nodes have
 * permanent faults (see quorumlock_error_is_permanent) that no majority is possible. Default: 3000.
 * Any thread. In a child of fork: changes the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_config_set_unavailable_after_ms(quorumlock_config *config, uint64_t time_ms);

/* The longest time to live that a lock may ask for, and how long a restarted node does not count: the same in all
 * clients of the nodes. Locks of longer work have a watchdog. Default: 60000, a minute. At least 1.
 * Any thread. In a child of fork: changes the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_config_set_max_ttl_ms(quorumlock_config *config, uint64_t ttl_ms);

/* Declares all nodes durable if `durable` is not 0, as quorumlock_config_add_durable_node does for one. "durable=" in a
 * URL counts over this. Default: no.
 * Any thread. In a child of fork: changes the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_config_set_durable(quorumlock_config *config, int durable);

/* What is done about nodes that were restarted and may have forgotten locks. */
typedef enum quorumlock_restart_guard {
    /* A node that this client has met before, and that was restarted since, does not count until the longest time to
     * live has passed. One that is met for the first time counts. The default. */
    QUORUMLOCK_RESTART_GUARD_OBSERVED = 0,
    /* Every node counts, whatever has happened to it. Two may then hold a lock at once after a restart without data. */
    QUORUMLOCK_RESTART_GUARD_OFF = 1,
    /* And one that is met for the first time must have been up for so long. */
    QUORUMLOCK_RESTART_GUARD_STRICT = 2
} quorumlock_restart_guard;

/* What is done about restarted nodes: one of quorumlock_restart_guard, or it gives QUORUMLOCK_NO_SUCH_NUMBER.
 * Any thread. In a child of fork: changes the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_config_set_restart_guard(quorumlock_config *config, int guard);

/* Whether those who wait for a lock are woken when another program releases it, and others when this one does: not if
 * `enabled` is 0. It takes a second connection to each node while somebody waits, and a user that may publish and
 * subscribe. Default: yes.
 * Any thread. In a child of fork: changes the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_config_set_wake_ups(quorumlock_config *config, int enabled);

/* How long nodes keep the key of a fenced lock, and with it the last number, after it was last used. Default: a day,
 * and never less than the longest time to live and two minutes more. Give all clients the same.
 * Any thread. In a child of fork: changes the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_config_set_fence_retention_ms(quorumlock_config *config, uint64_t time_ms);

/* For how long a thread that is alone with its client polls before it sleeps, in microseconds; 0 is not at all, which
 * is right where all processors are busy. Default: 100, and 0 on a single processor. At most 10000.
 * Any thread. In a child of fork: changes the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_config_set_spin_us(quorumlock_config *config, uint64_t time_us);

/* Is told what happens to locks and nodes: `event` says what, and lasts until the callback returns. Conventions 11. */
typedef void (*quorumlock_observer)(void *userdata, const quorumlock_event *event);

/* Gives back what was given as userdata. May be called on any thread. */
typedef void (*quorumlock_release)(void *userdata);

/* Has `observer` told what happens with the clients that are made of the configuration. Replaces an earlier one.
 * `userdata` is handed to it as it is, on whichever thread, and may be NULL. `release`, which may be NULL, is called
 * with it once, in any case: when the observer will not be called any more, because the configuration and all clients,
 * mutexes and guards made with it are gone, or at once if the result is not QUORUMLOCK_OK. A client without an
 * observer spends nothing on it.
 * Any thread. In a child of fork: changes the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_config_set_observer(
    quorumlock_config *config, quorumlock_observer observer, void *userdata, quorumlock_release release);

/* ---- Client ----------------------------------------------------------------------------------------------------- */

/* Makes a client. Connects to nobody, and does not fail because a node is down. The configuration can be freed,
 * changed or used again.
 * Fails with QUORUMLOCK_CONFIG for settings that cannot be used, QUORUMLOCK_UNAVAILABLE without descriptors or memory.
 * Any thread. In a child of fork: works, also with an inherited configuration. Not in a signal handler. */
quorumlock_result quorumlock_client_new(
    const quorumlock_config *config, quorumlock_client **client, quorumlock_error **error);

/* Waits until every node has run the releases that the client owes it, for timeout_ms at most: those that are not sent or
 * not answered yet, and those that are sent again because a node was down or could not run them. Closes nothing: the
 * client can be used on. A program that ends by exit without freeing its clients calls this before: what is not sent by
 * then is lost, and those locks stay held for their time to live.
 * Fails with QUORUMLOCK_UNAVAILABLE when a node has not run all of them in time, with that node among the causes; or
 * QUORUMLOCK_FORKED.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED. Not in a signal handler. */
quorumlock_result quorumlock_client_close(
    const quorumlock_client *client, uint64_t timeout_ms, quorumlock_error **error);

/* Lets go of a client. Its connections are closed, and its threads end, when its mutexes and guards are freed too;
 * whichever of these calls is the last waits for the answers to releases, and for the threads, for a node timeout each at
 * most, unless it is made on such a thread, by a callback. NULL is allowed.
 * Any thread. In a child of fork: closes the child's copies of the connections, no more. Not in a signal handler. */
void quorumlock_client_free(quorumlock_client *client);

/* ---- Mutex ------------------------------------------------------------------------------------------------------ */

/* The lock of a resource. Asks nobody. A name has 1 to 4096 bytes; one that has not is reported when it is locked.
 * Mutexes of the same name are the same lock, in this program and in every other that uses the same nodes and prefix.
 * It is not reentrant: a thread that locks what it holds waits for itself.
 * Any thread. In a child of fork: works, but the mutex does not. Not in a signal handler. */
quorumlock_result quorumlock_mutex_new(
    const quorumlock_client *client, const char *name, size_t name_length, quorumlock_mutex **mutex);

/* Frees a mutex. Guards that were taken with it are not affected, nor are threads that wait in a call with it. NULL is
 * allowed. May be the last call of the client: see quorumlock_client_free.
 * Any thread. In a child of fork: frees the child's copy. Not in a signal handler. */
void quorumlock_mutex_free(quorumlock_mutex *mutex);

/* The name of the resource. Empty for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_str quorumlock_mutex_name(const quorumlock_mutex *mutex);

/* How long the lock lasts unless it is released or extended. Default: 10000. At least 1 and more than clock drift
 * takes, at most what quorumlock_config_set_max_ttl_ms allows; checked when it is locked. Goes for locks that are
 * taken from now on.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED, or no effect. Not in a signal handler. */
quorumlock_result quorumlock_mutex_set_ttl_ms(quorumlock_mutex *mutex, uint64_t ttl_ms);

/* Whether locks are extended automatically for as long as they are held: not if `enabled` is 0. Default: not.
 * Switching it on keeps the settings below, switching it off forgets them. Goes for locks that are taken from now on.
 * An extension is due after a third of the time to live and tried again several times before the end. One thread does
 * it for all locks of a client.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED, or no effect. Not in a signal handler. */
quorumlock_result quorumlock_mutex_set_watchdog(quorumlock_mutex *mutex, int enabled);

/* How long after an extension the next one follows, and switches automatic extension on. Default: a third of the time
 * to live. At least 1.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED, or no effect. Not in a signal handler. */
quorumlock_result quorumlock_mutex_set_watchdog_period_ms(quorumlock_mutex *mutex, uint64_t period_ms);

/* How long before the end of its validity a lock that could not be extended counts as lost, and switches automatic
 * extension on. Default: a tenth of the validity, at most 1000. Less than half of the validity.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED, or no effect. Not in a signal handler. */
quorumlock_result quorumlock_mutex_set_watchdog_margin_ms(quorumlock_mutex *mutex, uint64_t margin_ms);

/* How often a lock is extended automatically at most, and switches automatic extension on. Default: without limit.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED, or no effect. Not in a signal handler. */
quorumlock_result quorumlock_mutex_set_watchdog_at_most(quorumlock_mutex *mutex, uint32_t extensions);

/* For how long a lock is extended automatically, counted from when it is taken, and switches automatic extension on.
 * Default: without limit.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED, or no effect. Not in a signal handler. */
quorumlock_result quorumlock_mutex_set_watchdog_at_most_for_ms(quorumlock_mutex *mutex, uint64_t time_ms);

/* Whether each acquisition gets a number that is greater than those of all before: not if `enabled` is 0. Default:
 * not. See quorumlock_guard_fencing_token. A FENCED AND A PLAIN LOCK OF THE SAME NAME ARE TWO DIFFERENT LOCKS: all
 * programs must agree. Nodes need scripts for it. Goes for locks that are taken from now on.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED, or no effect. Not in a signal handler. */
quorumlock_result quorumlock_mutex_set_fenced(quorumlock_mutex *mutex, int enabled);

/* Takes the lock, waiting for as long as somebody else has it, but not for ever on nodes that are not there. Threads
 * that share a client queue up, first come, first served. `cancel` may be NULL; otherwise it ends the wait from
 * another thread.
 * Gives QUORUMLOCK_OK and a guard; or QUORUMLOCK_UNAVAILABLE, _CANCELLED, _CONFIG, _ENTROPY, _FORKED, and nothing is
 * held.
 * Any thread; blocks it. In a child of fork: QUORUMLOCK_FORKED. Not in a signal handler. */
quorumlock_result quorumlock_mutex_lock(
    const quorumlock_mutex *mutex, const quorumlock_cancel_handle *cancel, quorumlock_guard **guard,
    quorumlock_error **error);

/* Makes one attempt, and waits for no holder and in no queue: a node timeout at most passes, one more if connections
 * have to be made first, and one more for a fenced lock.
 * Gives QUORUMLOCK_OK and a guard, or QUORUMLOCK_HELD; or QUORUMLOCK_UNAVAILABLE, _CONFIG, _ENTROPY, _FORKED.
 * Any thread; blocks it for no longer. In a child of fork: QUORUMLOCK_FORKED. Not in a signal handler. */
quorumlock_result quorumlock_mutex_try_lock(
    const quorumlock_mutex *mutex, quorumlock_guard **guard, quorumlock_error **error);

/* Takes the lock, waiting for so long at most; 0 is one attempt. Otherwise as quorumlock_mutex_lock.
 * Gives QUORUMLOCK_OK and a guard, or QUORUMLOCK_HELD when the time was up; or _UNAVAILABLE, _CANCELLED, _CONFIG,
 * _ENTROPY, _FORKED.
 * Any thread; blocks it. In a child of fork: QUORUMLOCK_FORKED. Not in a signal handler. */
quorumlock_result quorumlock_mutex_lock_timeout(
    const quorumlock_mutex *mutex, uint64_t timeout_ms, const quorumlock_cancel_handle *cancel,
    quorumlock_guard **guard, quorumlock_error **error);

/* Takes the lock, waiting until then at the latest, by quorumlock_now_ms(); a time in the past is one attempt.
 * Otherwise as quorumlock_mutex_lock_timeout.
 * Any thread; blocks it. In a child of fork: QUORUMLOCK_FORKED. Not in a signal handler. */
quorumlock_result quorumlock_mutex_lock_deadline(
    const quorumlock_mutex *mutex, uint64_t deadline_ms, const quorumlock_cancel_handle *cancel,
    quorumlock_guard **guard, quorumlock_error **error);

/* Goes on with a lock that is held already: makes a guard of a lease. Asks no node and does not wait. The mutex's
 * settings for automatic extension hold from now on. The lease is used up, also when this fails, and still is to be
 * freed. To be certain of the lock, extend it next.
 * Gives QUORUMLOCK_OK and a guard; or QUORUMLOCK_LEASE_LOST, _USED_UP, _CONFIG (another resource), _FORKED.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED. Not in a signal handler. */
quorumlock_result quorumlock_mutex_attach(
    const quorumlock_mutex *mutex, quorumlock_lease *lease, quorumlock_guard **guard, quorumlock_error **error);

/* ---- Cancelling ------------------------------------------------------------------------------------------------- */

/* A handle that has cancelled nothing. NULL only if there is no memory.
 * Any thread. In a child of fork: works. Not in a signal handler. */
quorumlock_cancel_handle *quorumlock_cancel_handle_new(void);

/* Frees a handle. Cancels nothing; waits that were given it go on. NULL is allowed.
 * Any thread. In a child of fork: frees the child's copy. Not in a signal handler. */
void quorumlock_cancel_handle_free(quorumlock_cancel_handle *cancel);

/* Ends all waits that were given this handle, and those that will be. Doing it twice does no harm.
 * Any thread. In a child of fork: cancels nothing of the parent's. Not in a signal handler. */
quorumlock_result quorumlock_cancel_handle_cancel(const quorumlock_cancel_handle *cancel);

/* 1 if it has been cancelled, otherwise 0. 0 for NULL.
 * Any thread. In a child of fork: tells of its copy. Not in a signal handler. */
int quorumlock_cancel_handle_is_cancelled(const quorumlock_cancel_handle *cancel);

/* ---- Guard ------------------------------------------------------------------------------------------------------ */

/* Frees a guard. If it holds its lock, posts the release and does not wait for answers; what comes of it only the
 * observer is told. NULL is allowed. May be the last call of the client: see quorumlock_client_free.
 * Any thread. In a child of fork: frees the child's copy; the lock stays the parent's. Not in a signal handler. */
void quorumlock_guard_free(quorumlock_guard *guard);

/* The name of the resource. Empty for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_str quorumlock_guard_name(const quorumlock_guard *guard);

/* For how long the lock may still be relied on, by the clock as it is now. LOOK BEFORE EVERY STEP THAT MUST NOT BE
 * DONE TWICE: a guard cannot stop time. 0 once it may not, when the guard holds no lock, and for NULL. While another
 * thread extends the lock, it is known when that is done, a node timeout later at most; to callbacks of the extension,
 * 0.
 * Any thread. In a child of fork: 0. Not in a signal handler. */
uint64_t quorumlock_guard_remaining_ms(const quorumlock_guard *guard);

/* The look before every step that must not be done twice: whether the lock may be relied on for at least so long. Give it
 * the longest time that the step may take.
 * Gives QUORUMLOCK_OK, or QUORUMLOCK_NOT_HELD when it was unlocked or detached before; or QUORUMLOCK_LEASE_LOST: less is
 * left, or the lock is lost; _BUSY, _FORKED.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED. Not in a signal handler. */
quorumlock_result quorumlock_guard_ensure(
    const quorumlock_guard *guard, uint64_t at_least_ms, quorumlock_error **error);

/* The number of this acquisition, greater than that of every acquisition before it: send it along with everything that
 * is written under the lock, and let the resource refuse smaller ones than it has seen. In a database: UPDATE ... SET
 * ..., fence = :fence WHERE id = 42 AND fence <= :fence. It stays true, and can be asked for, when the lock is gone.
 * It is less than 2^53. 0 if the lock is not fenced, and for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
uint64_t quorumlock_guard_fencing_token(const quorumlock_guard *guard);

/* Releases the lock, and waits until a majority of nodes has answered, for a node timeout at most. The guard holds no
 * lock any more, whatever the result, and still is to be freed.
 * Gives QUORUMLOCK_OK when the lock was ours to the end, QUORUMLOCK_EXPIRED when it was not, QUORUMLOCK_NOT_HELD when
 * it was unlocked or detached before; or QUORUMLOCK_UNAVAILABLE: too few answered, the release has been sent to all
 * that can be reached, and at the latest the lock ends with its time to live; _BUSY, _FORKED.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED; the lock is still held. Not in a signal handler. */
quorumlock_result quorumlock_guard_unlock(quorumlock_guard *guard, quorumlock_error **error);

/* Makes the lock last for so long from now on. Waits for the answers, for a node timeout at most. A failed extension
 * destroys nothing, and nothing revives a lock that is lost.
 * Gives QUORUMLOCK_OK, QUORUMLOCK_LOST or QUORUMLOCK_NOT_HELD; or QUORUMLOCK_EXTENSION_FAILED: still ours for what is
 * left; _CONFIG, _BUSY, _FORKED.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED. Not in a signal handler. */
quorumlock_result quorumlock_guard_extend(quorumlock_guard *guard, uint64_t ttl_ms, quorumlock_error **error);

/* A descriptor for poll, select, epoll or an event loop: it becomes readable, and stays so, when the lock is lost,
 * because its lease ends and could not be extended, or because a majority of nodes says that it is not ours. That is
 * before the end of the validity if the lock is extended automatically, otherwise at the end. It belongs to the guard:
 * do not read from it, do not close it, and take it out of the event loop before the guard is freed, which closes it.
 * Every call for one guard gives the same. When the lock is released or detached first, it never becomes readable.
 * Gives QUORUMLOCK_OK or QUORUMLOCK_NOT_HELD; or QUORUMLOCK_UNAVAILABLE without descriptors or threads, _UNSUPPORTED
 * on Windows, _BUSY, _FORKED.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED; one that is inherited says nothing. Not in a signal handler. */
quorumlock_result quorumlock_guard_lost_fd(quorumlock_guard *guard, int *descriptor, quorumlock_error **error);

/* Is told that a lock is lost. Conventions 11. */
typedef void (*quorumlock_lost)(void *userdata);

/* Has `lost` called once with `userdata`, at the same time as the descriptor becomes readable; at once, if that time
 * has passed. On the client's thread, or in quorumlock_guard_extend, or here. There can be several. `release`, which
 * may be NULL, is called with `userdata` when `lost` has returned, or when it will never be called, because the lock
 * was released, detached or freed first. Note that `lost` may just be running on another thread while the lock is
 * released here: what it uses must last until `release`. That is called in any case: at once if the result is not
 * QUORUMLOCK_OK.
 * Gives QUORUMLOCK_OK or QUORUMLOCK_NOT_HELD; or QUORUMLOCK_UNAVAILABLE without threads, _BUSY, _FORKED.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED, and nothing is called. Not in a signal handler. */
quorumlock_result quorumlock_guard_on_lost(
    quorumlock_guard *guard, quorumlock_lost lost, void *userdata, quorumlock_release release,
    quorumlock_error **error);

/* Lets go of the guard and not of the lock: gives what another thread, process or program needs to go on with it.
 * Sends nothing; if an automatic extension is under way, waits for its answers, two node timeouts at most. The guard
 * holds no lock any more, and still is to be freed.
 * Gives QUORUMLOCK_OK and a lease, or QUORUMLOCK_NOT_HELD; or _BUSY, _FORKED.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED. Not in a signal handler. */
quorumlock_result quorumlock_guard_detach(quorumlock_guard *guard, quorumlock_lease **lease, quorumlock_error **error);

/* ---- Lease ------------------------------------------------------------------------------------------------------ */

/* Frees a lease. RELEASES NOTHING: the lock stays held until somebody attaches the lease and releases it, or it runs
 * out. NULL is allowed.
 * Any thread. In a child of fork: frees the child's copy. Not in a signal handler. */
void quorumlock_lease_free(quorumlock_lease *lease);

/* The lock's key on the nodes: the name of the resource behind the client's prefix. Empty for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_str quorumlock_lease_key(const quorumlock_lease *lease);

/* How long the lock was last asked to last. 0 for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
uint64_t quorumlock_lease_ttl_ms(const quorumlock_lease *lease);

/* The number of the acquisition, see quorumlock_guard_fencing_token. 0 if the lock is not fenced, and for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
uint64_t quorumlock_lease_fencing_token(const quorumlock_lease *lease);

/* When the lock ends by the wall clock: milliseconds since 1970. 0 for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
uint64_t quorumlock_lease_end_unix_ms(const quorumlock_lease *lease);

/* For how long the lock may still be relied on. 0 once it may not, when the lease is used up, and for NULL.
 * Any thread. In a child of fork: the same, if the parent lets it have the lease. Not in a signal handler. */
uint64_t quorumlock_lease_remaining_ms(const quorumlock_lease *lease);

/* Makes a guard of a lease, with the mutex's default settings and the lease's time to live. Otherwise as
 * quorumlock_mutex_attach.
 * Gives QUORUMLOCK_OK and a guard; or QUORUMLOCK_LEASE_LOST, _USED_UP, _CONFIG (another prefix), _FORKED.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED if the client is inherited, otherwise works. Not in a signal
 * handler. */
quorumlock_result quorumlock_client_attach(
    const quorumlock_client *client, quorumlock_lease *lease, quorumlock_guard **guard, quorumlock_error **error);

/* The lease as one line of text, for another process: printable ASCII without blanks, quotes or a line feed. The lease
 * is used up, and still is to be freed. As text, it ends by the wall clock: those of both machines must agree. Attach
 * it once: two that attach the same text both believe that they have the lock.
 * Gives QUORUMLOCK_OK and a secret; or QUORUMLOCK_USED_UP.
 * Any thread. In a child of fork: works on the child's copy. Not in a signal handler. */
quorumlock_result quorumlock_lease_into_text(
    quorumlock_lease *lease, quorumlock_secret **secret, quorumlock_error **error);

/* Reads such a text: exactly that, without a line feed behind it. Whether the lease still lasts is found out when it
 * is attached.
 * Gives QUORUMLOCK_OK and a lease; or QUORUMLOCK_CONFIG: damaged, of a later version, or something else; it is never
 * quoted.
 * Any thread. In a child of fork: works. Not in a signal handler. */
quorumlock_result quorumlock_lease_from_text(
    const char *text, size_t text_length, quorumlock_lease **lease, quorumlock_error **error);

/* The text. WHO READS IT HAS THE LOCK: hand it over by a pipe, or a file or variable that only the receiver can read,
 * and not by a command line. Empty for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_str quorumlock_secret_text(const quorumlock_secret *secret);

/* Overwrites the text, and frees it. NULL is allowed.
 * Any thread. In a child of fork: frees the child's copy. Not in a signal handler. */
void quorumlock_secret_free(quorumlock_secret *secret);

/* ---- Nodes ------------------------------------------------------------------------------------------------------ */

/* What a node is to a client. More may follow in later versions. */
typedef enum quorumlock_node_state {
    /* There is no such node. */
    QUORUMLOCK_NODE_NONE = 0,
    /* Nothing was heard of it. Connections are made when a lock is wanted. */
    QUORUMLOCK_NODE_UNKNOWN = 1,
    /* It votes. */
    QUORUMLOCK_NODE_VOTING = 2,
    /* It cannot be asked. It is tried again with growing delays, for ever. */
    QUORUMLOCK_NODE_DOWN = 3,
    /* It answers, and does not vote: a replica, a wrong password, the same server as another node; or it answered the
     * last attempt with an error that does not pass by itself, such as out of memory or no permission. */
    QUORUMLOCK_NODE_REJECTED = 4,
    /* It answers, and does not count yet, because it was restarted or was a replica for a while. */
    QUORUMLOCK_NODE_QUARANTINED = 5
} quorumlock_node_state;

/* What a server is to others. More may follow in later versions. */
typedef enum quorumlock_role {
    /* It was not met yet, or withholds it. */
    QUORUMLOCK_ROLE_UNKNOWN = 0,
    QUORUMLOCK_ROLE_MASTER = 1,
    QUORUMLOCK_ROLE_REPLICA = 2
} quorumlock_role;

/* How the nodes of a client look now, in the order in which they were named: a copy that does not change. Asks none of
 * them and waits for nothing; it is what the client has found out while it was used.
 * Gives QUORUMLOCK_OK and the nodes; or QUORUMLOCK_FORKED.
 * Any thread. In a child of fork: QUORUMLOCK_FORKED. Not in a signal handler. */
quorumlock_result quorumlock_client_nodes(
    const quorumlock_client *client, quorumlock_nodes **nodes, quorumlock_error **error);

/* Makes all connections, asks each node whether it may vote, and waits for all of them, for this long at most: at the
 * start of a program, or as a health check. Each node is tried once. Without it, the first lock makes the connections.
 * Gives QUORUMLOCK_OK and the nodes; or QUORUMLOCK_UNAVAILABLE when fewer than a majority can vote now, with the cause
 * at each of the others (quorumlock_client_nodes gives the nodes all the same); or QUORUMLOCK_FORKED.
 * Any thread; blocks it for no longer. In a child of fork: QUORUMLOCK_FORKED. Not in a signal handler. */
quorumlock_result quorumlock_client_connect(
    const quorumlock_client *client, uint64_t timeout_ms, quorumlock_nodes **nodes, quorumlock_error **error);

/* Frees the copy. NULL is allowed.
 * Any thread. In a child of fork: frees the child's copy. Not in a signal handler. */
void quorumlock_nodes_free(quorumlock_nodes *nodes);

/* How many nodes there are. 0 for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
size_t quorumlock_nodes_count(const quorumlock_nodes *nodes);

/* What one of them is to the client, counted from 0. QUORUMLOCK_NODE_NONE when there is none, and for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_node_state quorumlock_nodes_state(const quorumlock_nodes *nodes, size_t index);

/* All of it in one line, such as "10.0.0.3:6379: voting for 12s, Redis 7.0.15". Empty when there is none, and for
 * NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_str quorumlock_nodes_message(const quorumlock_nodes *nodes, size_t index);

/* Its address: "host:port", or "unix:" and a path. Empty when there is none, and for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_str quorumlock_nodes_address(const quorumlock_nodes *nodes, size_t index);

/* For how long it has been so, since the client found out. 0 when there is none, and for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
uint64_t quorumlock_nodes_state_age_ms(const quorumlock_nodes *nodes, size_t index);

/* For how long it does not count yet, if it is in quarantine. 0 otherwise, and for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
uint64_t quorumlock_nodes_quarantine_ms(const quorumlock_nodes *nodes, size_t index);

/* 1 if there is a connection to it, otherwise 0. A node that votes may have none: servers close idle ones. 0 for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
int quorumlock_nodes_is_connected(const quorumlock_nodes *nodes, size_t index);

/* 1 if it is declared durable and its INFO does not contradict that (aof_enabled:0), otherwise 0. 0 for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
int quorumlock_nodes_is_durable(const quorumlock_nodes *nodes, size_t index);

/* What server it is, such as "Redis 7.0.15". Empty when it was not met yet or withholds it, and for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_str quorumlock_nodes_server(const quorumlock_nodes *nodes, size_t index);

/* The first eight digits of its run id, which is another one after each restart. Empty when it was not met yet or
 * withholds it (then its restarts are not noticed), and for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_str quorumlock_nodes_run_id(const quorumlock_nodes *nodes, size_t index);

/* Whether it is a master, as it should be. QUORUMLOCK_ROLE_UNKNOWN when it was not met yet or withholds it, and for
 * NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_role quorumlock_nodes_role(const quorumlock_nodes *nodes, size_t index);

/* By what policy it evicts keys when its memory is full, if it may: then it may forget a lock. Otherwise empty, and
 * for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
quorumlock_str quorumlock_nodes_eviction(const quorumlock_nodes *nodes, size_t index);

/* How it failed last. It lasts as long as `nodes`. NULL if it never did, when there is none, and for NULL.
 * Any thread. In a child of fork: the same. Not in a signal handler. */
const quorumlock_fault *quorumlock_nodes_last_fault(const quorumlock_nodes *nodes, size_t index);

/* ---- Events ----------------------------------------------------------------------------------------------------- */

/* What happened. More may follow in later versions: ignore what you do not know. Behind each, what it tells besides a
 * message; the functions that belong to other kinds give 0, or an empty text. */
typedef enum quorumlock_kind {
    QUORUMLOCK_EVENT_NONE = 0,
    /* A lock was taken, and its guard is about to be returned: name, waited_us, attempts, round_trips. */
    QUORUMLOCK_EVENT_ACQUIRED = 1,
    /* An attempt was lost, and undone: name, attempts (which it was), granted, refused, faults. */
    QUORUMLOCK_EVENT_ATTEMPT_LOST = 2,
    /* A lock was extended: name, ttl_ms, is_automatic. */
    QUORUMLOCK_EVENT_EXTENDED = 3,
    /* Too few nodes answered an extension, and the lock is still held: name, is_automatic, remaining_ms, faults. */
    QUORUMLOCK_EVENT_EXTENSION_FAILED = 4,
    /* A lock was lost, because so many nodes have not its key that no majority can hold it: name. */
    QUORUMLOCK_EVENT_LOST_KEY = 5,
    /* A lock was lost, because its time was up: name. */
    QUORUMLOCK_EVENT_LOST_TIME = 6,
    /* A node cannot be asked any more, or answers attempts with an error: addresses (one), faults (one). */
    QUORUMLOCK_EVENT_NODE_DOWN = 7,
    /* A node votes, for the first time or again: addresses (one). */
    QUORUMLOCK_EVENT_NODE_UP = 8,
    /* Too few nodes answered a release: name, is_freed, faults. */
    QUORUMLOCK_EVENT_RELEASE_FAILED = 9,
    /* A lock was released in time: name, is_freed. */
    QUORUMLOCK_EVENT_RELEASED = 10,
    /* A lock was released too late: name, is_freed. */
    QUORUMLOCK_EVENT_EXPIRED = 11,
    /* The key of a held lock was set again on nodes that had lost it: name, addresses. */
    QUORUMLOCK_EVENT_REPAIRED = 12,
    /* A node has a limit of memory, and evicts keys when it is full: addresses (one), policy. */
    QUORUMLOCK_EVENT_NODE_MAY_EVICT = 13,
    /* A node was restarted or was a replica, and does not count for a while: addresses (one), remaining_ms. */
    QUORUMLOCK_EVENT_NODE_QUARANTINED = 14,
    /* A node that was in quarantine counts again: addresses (one). */
    QUORUMLOCK_EVENT_QUARANTINE_ENDED = 15,
    /* A node does not let others be told of releases. Locks work all the same: addresses (one), faults (one). */
    QUORUMLOCK_EVENT_PUBLISH_REFUSED = 16,
    /* A node does not tell of the releases of others. Locks work all the same: addresses (one), faults (one). */
    QUORUMLOCK_EVENT_SUBSCRIBE_REFUSED = 17,
    /* A wait has failed, because the lock is held by a key that has no expiry on a majority: name, addresses. */
    QUORUMLOCK_EVENT_KEY_WITHOUT_EXPIRY = 18,
    /* Events were dropped, because they come faster than the observer takes them: dropped. */
    QUORUMLOCK_EVENT_EVENTS_DROPPED = 19,
    /* A node is declared durable and appends nothing to disk: the declaration is ignored. Addresses (one). */
    QUORUMLOCK_EVENT_NODE_NOT_DURABLE = 20
} quorumlock_kind;

/* What happened. QUORUMLOCK_EVENT_NONE for NULL.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
quorumlock_kind quorumlock_event_kind(const quorumlock_event *event);

/* The event in one line, for a log. Empty for NULL.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
quorumlock_str quorumlock_event_message(const quorumlock_event *event);

/* The name of the resource. Empty when it is about nodes, and for NULL.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
quorumlock_str quorumlock_event_name(const quorumlock_event *event);

/* How many nodes it names. 0 for NULL.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
size_t quorumlock_event_address_count(const quorumlock_event *event);

/* The address of one of them, counted from 0: "host:port", or "unix:" and a path. Empty when there is none, and for
 * NULL.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
quorumlock_str quorumlock_event_address(const quorumlock_event *event, size_t index);

/* How many nodes gave no usable answer. 0 for NULL.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
size_t quorumlock_event_fault_count(const quorumlock_event *event);

/* One of them, counted from 0. It lasts until the callback returns. NULL when there is none, and for NULL.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
const quorumlock_fault *quorumlock_event_fault(const quorumlock_event *event, size_t index);

/* How long it took to take the lock, from the call to the answer that won it, in microseconds.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
uint64_t quorumlock_event_waited_us(const quorumlock_event *event);

/* How many attempts the call has made so far.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
uint32_t quorumlock_event_attempts(const quorumlock_event *event);

/* How many round trips the winning attempt took: 1, or 2 where nodes had to be brought to one number for a fenced
 * lock.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
uint32_t quorumlock_event_round_trips(const quorumlock_event *event);

/* How many nodes granted the lock.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
size_t quorumlock_event_granted(const quorumlock_event *event);

/* How many nodes answered that somebody else has the lock.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
size_t quorumlock_event_refused(const quorumlock_event *event);

/* The new time to live.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
uint64_t quorumlock_event_ttl_ms(const quorumlock_event *event);

/* What was left of the lease, or of the quarantine.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
uint64_t quorumlock_event_remaining_ms(const quorumlock_event *event);

/* By what policy the node evicts keys. Empty for NULL.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
quorumlock_str quorumlock_event_policy(const quorumlock_event *event);

/* How many events were dropped since this was last told.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
uint64_t quorumlock_event_dropped(const quorumlock_event *event);

/* 1 if it was an automatic extension, 0 if one by quorumlock_guard_extend.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
int quorumlock_event_is_automatic(const quorumlock_event *event);

/* 1 if the guard was freed while it held the lock, 0 if it was unlocked.
 * Any thread, within the callback. In a child of fork: there is none. Not in a signal handler. */
int quorumlock_event_is_freed(const quorumlock_event *event);

#ifdef __cplusplus
}
#endif

#endif
