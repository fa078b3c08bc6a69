// quorumlock for C++17: handles that free themselves, and failures that are thrown. All of quorumlock.h is here.
//
//     quorumlock::client client({"redis://10.0.0.1:6379", "redis://10.0.0.2:6379", "redis://10.0.0.3:6379"});
//     quorumlock::mutex order(client, "orders/42");
//     if (auto guard = order.try_lock_for(std::chrono::seconds(1))) {
//         guard->ensure(std::chrono::seconds(2));  // before every step that must not be done twice
//         bool was_alone = guard->unlock();        // or let it go out of scope
//     }
//
// "Another client has it" is an empty optional. A guard that goes out of scope releases its lock without waiting for
// answers. quorumlock.h says what a call means and which results it gives, at the function that it calls. An object may
// be moved; one that was moved from may only be destroyed or assigned to. Callbacks must not throw: what they throw is
// caught and dropped.
#ifndef QUORUMLOCK_HPP
#define QUORUMLOCK_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <quorumlock.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quorumlock {

using milliseconds = std::chrono::milliseconds;
using microseconds = std::chrono::microseconds;

inline std::string text(quorumlock_str text) { return std::string(text.data, text.length); }
inline std::string text(quorumlock_result result) { return text(quorumlock_result_text(result)); }

// Of the library, not of the header.
inline std::string version() { return text(quorumlock_version()); }
inline std::uint32_t version_number() noexcept { return quorumlock_version_number(); }

// The clock of deadlines: see mutex::try_lock_until.
inline milliseconds now() noexcept { return milliseconds(quorumlock_now_ms()); }

// A node that gave no usable answer, and why.
struct fault {
    explicit fault(const quorumlock_fault *from)
        : address(text(quorumlock_fault_address(from))), message(text(quorumlock_fault_message(from))),
          phase(quorumlock_fault_phase(from)), cause(quorumlock_fault_cause(from)),
          number(quorumlock_fault_number(from))
    {
    }

    std::string address;
    std::string message;
    quorumlock_phase phase;
    quorumlock_cause cause;
    std::int64_t number;
};

// Thrown by every call that could not be done.
class failure : public std::runtime_error {
public:
    explicit failure(quorumlock_result result) : std::runtime_error(text(result)), result_(result) {}
    explicit failure(const quorumlock_error *error)
        : std::runtime_error(text(quorumlock_error_message(error))), result_(quorumlock_error_result(error)),
          is_permanent_(quorumlock_error_is_permanent(error) != 0)
    {
        for (std::size_t index = 0; index < quorumlock_error_fault_count(error); index++) {
            faults_.emplace_back(quorumlock_error_fault(error, index));
        }
    }
    quorumlock_result result() const noexcept { return result_; }
    const std::vector<fault> &faults() const noexcept { return faults_; }
    // Whether trying again cannot help until something is changed.
    bool is_permanent() const noexcept { return is_permanent_; }

private:
    quorumlock_result result_;
    // Without an error of its own, the call made no sense.
    bool is_permanent_ = true;
    std::vector<fault> faults_;
};

namespace detail {

template <typename T, void (*Free)(T *)> struct freed_by {
    void operator()(T *handle) const noexcept { Free(handle); }
};
template <typename T, void (*Free)(T *)> using handle = std::unique_ptr<T, freed_by<T, Free>>;

// Throws what is no answer.
inline quorumlock_result check(quorumlock_result result)
{
    if (result >= QUORUMLOCK_CONFIG) {
        throw failure(result);
    }
    return result;
}

// Calls a function whose last argument is the error.
template <typename Function, typename... Arguments>
quorumlock_result call(Function function, Arguments... arguments)
{
    quorumlock_error *error = nullptr;
    quorumlock_result result = function(arguments..., &error);
    handle<quorumlock_error, quorumlock_error_free> owner(error);
    if (result >= QUORUMLOCK_CONFIG) {
        throw error ? failure(error) : failure(result);
    }
    return result;
}

// And throws every other answer than QUORUMLOCK_OK too.
template <typename Function, typename... Arguments> void must(Function function, Arguments... arguments)
{
    quorumlock_result result = call(function, arguments...);
    if (result != QUORUMLOCK_OK) {
        throw failure(result);
    }
}

template <typename Duration> std::uint64_t count(Duration time) noexcept
{
    return time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
}

} // namespace detail

// Something that happened: lasts until the callback returns that it was given to.
class event {
public:
    explicit event(const quorumlock_event *event) noexcept : event_(event) {}

    quorumlock_kind kind() const noexcept { return quorumlock_event_kind(event_); }
    std::string code() const { return text(quorumlock_event_code(event_)); }
    std::string message() const { return text(quorumlock_event_message(event_)); }
    std::string name() const { return text(quorumlock_event_name(event_)); }
    std::vector<std::string> addresses() const
    {
        std::vector<std::string> addresses;
        for (std::size_t index = 0; index < quorumlock_event_address_count(event_); index++) {
            addresses.push_back(text(quorumlock_event_address(event_, index)));
        }
        return addresses;
    }
    std::vector<fault> faults() const
    {
        std::vector<fault> faults;
        for (std::size_t index = 0; index < quorumlock_event_fault_count(event_); index++) {
            faults.emplace_back(quorumlock_event_fault(event_, index));
        }
        return faults;
    }
    microseconds waited() const noexcept { return microseconds(quorumlock_event_waited_us(event_)); }
    bool has_waited() const noexcept { return quorumlock_event_has_waited(event_) != 0; }
    microseconds held() const noexcept { return microseconds(quorumlock_event_held_us(event_)); }
    quorumlock_reason reason() const noexcept { return quorumlock_event_reason(event_); }
    quorumlock_severity severity() const noexcept { return quorumlock_event_severity(event_); }
    std::uint32_t attempts() const noexcept { return quorumlock_event_attempts(event_); }
    std::uint32_t round_trips() const noexcept { return quorumlock_event_round_trips(event_); }
    std::uint32_t position() const noexcept { return quorumlock_event_position(event_); }
    std::uint32_t told() const noexcept { return quorumlock_event_told(event_); }
    std::uint32_t unasked() const noexcept { return quorumlock_event_unasked(event_); }
    std::uint32_t challenges() const noexcept { return quorumlock_event_challenges(event_); }
    std::size_t granted() const noexcept { return quorumlock_event_granted(event_); }
    std::size_t refused() const noexcept { return quorumlock_event_refused(event_); }
    std::size_t nodes() const noexcept { return quorumlock_event_nodes(event_); }
    milliseconds ttl() const noexcept { return milliseconds(quorumlock_event_ttl_ms(event_)); }
    milliseconds remaining() const noexcept { return milliseconds(quorumlock_event_remaining_ms(event_)); }
    std::string policy() const { return text(quorumlock_event_policy(event_)); }
    std::uint64_t dropped() const noexcept { return quorumlock_event_dropped(event_); }
    bool is_automatic() const noexcept { return quorumlock_event_is_automatic(event_) != 0; }
    bool is_freed() const noexcept { return quorumlock_event_is_freed(event_) != 0; }

private:
    const quorumlock_event *event_;
};

using observer = std::function<void(const event &)>;

// What to log in with. Without a user, the user of the URL counts, or the default user. After `refresh_after` the
// provider is called again; with 0, for the next connection.
struct credentials {
    std::optional<std::string> user;
    std::string password;
    milliseconds refresh_after { 0 };
};
using provider = std::function<credentials(std::string_view node)>;

// What the library is given to call. Each owns what it calls, and deletes it when the library gives it back.
extern "C" {
inline void quorumlock_hpp_observe(void *userdata, const quorumlock_event *happened)
{
    try {
        (*static_cast<observer *>(userdata))(event(happened));
    } catch (...) {
    }
}
inline void quorumlock_hpp_forget_observer(void *userdata) { delete static_cast<observer *>(userdata); }
inline int quorumlock_hpp_provide(void *userdata, quorumlock_str node, quorumlock_login *login)
{
    try {
        auto found = (*static_cast<provider *>(userdata))(std::string_view(node.data, node.length));
        auto user = found.user ? std::string_view(*found.user) : std::string_view();
        return quorumlock_login_set(login, user.data(), user.size(), found.password.data(), found.password.size(),
            detail::count(found.refresh_after));
    } catch (...) {
        return -1;
    }
}
inline void quorumlock_hpp_forget_provider(void *userdata) { delete static_cast<provider *>(userdata); }
inline void quorumlock_hpp_lost(void *userdata)
{
    try {
        (*static_cast<std::function<void()> *>(userdata))();
    } catch (...) {
    }
}
inline void quorumlock_hpp_write(void *userdata, const char *data, std::size_t length)
{
    try {
        static_cast<std::string *>(userdata)->assign(data, length);
    } catch (...) {
    }
}
inline void quorumlock_hpp_forget_lost(void *userdata) { delete static_cast<std::function<void()> *>(userdata); }
}

// What clients count, for a metrics server. With a separator, resources are distinguished by their names up to it.
class counters {
public:
    explicit counters(char separator = '\0') : handle_(quorumlock_counters_new(separator))
    {
        if (!handle_) {
            throw std::bad_alloc();
        }
    }

    // All series in the Prometheus text format.
    std::string text() const
    {
        std::string text;
        detail::check(quorumlock_counters_text(handle_.get(), quorumlock_hpp_write, &text));
        return text;
    }
    void attach(quorumlock_config *config) const { detail::check(quorumlock_counters_attach(handle_.get(), config)); }

private:
    detail::handle<quorumlock_counters, quorumlock_counters_free> handle_;
};

// The nodes and settings of clients. Settings have the names and values of quorumlock_config_set.
class config {
public:
    config() : handle_(quorumlock_config_new())
    {
        if (!handle_) {
            throw std::bad_alloc();
        }
    }
    config(std::initializer_list<std::string_view> nodes) : config()
    {
        for (std::string_view node : nodes) {
            add_node(node);
        }
    }

    // From environment variables that begin with `prefix`.
    static config from_env(std::string_view prefix)
    {
        quorumlock_config *made = nullptr;
        detail::must(quorumlock_config_from_env, prefix.data(), prefix.size(), &made);
        return config(made);
    }

    config &add_node(std::string_view url) { return call(quorumlock_config_add_node, url.data(), url.size()); }
    config &set(std::string_view name, std::string_view value)
    {
        detail::must(quorumlock_config_set, handle_.get(), name.data(), name.size(), value.data(), value.size());
        return *this;
    }
    config &label_here() { return call(quorumlock_config_set_label_here); }
    config &tls_roots_pem(std::string_view pem)
    {
        return call(quorumlock_config_set_tls_roots_pem, pem.data(), pem.size());
    }
    config &tls_identity_pem(std::string_view certificate, std::string_view key)
    {
        return call(
            quorumlock_config_set_tls_identity_pem, certificate.data(), certificate.size(), key.data(), key.size());
    }
    // Asks a function for the credentials of a node, by its address, before each connection of the clients that are
    // made from now on. It is called on a thread of the library's, and may block. After an exception, what it returned
    // before is used.
    config &credentials(provider provider)
    {
        auto *owned = new quorumlock::provider(std::move(provider));
        return call(quorumlock_config_set_provider, quorumlock_hpp_provide, static_cast<void *>(owned),
            quorumlock_hpp_forget_provider);
    }

    // Adds an observer to the clients that are made from now on. It is called on any thread.
    config &observe(observer observer)
    {
        auto *owned = new quorumlock::observer(std::move(observer));
        return call(quorumlock_config_add_observer, quorumlock_hpp_observe, static_cast<void *>(owned),
            quorumlock_hpp_forget_observer);
    }

    // The clients that are made from now on count there.
    config &count(const counters &counters)
    {
        counters.attach(handle_.get());
        return *this;
    }

    const quorumlock_config *get() const noexcept { return handle_.get(); }

private:
    explicit config(quorumlock_config *made) noexcept : handle_(made) {}

    template <typename Function, typename... Values> config &call(Function function, Values... values)
    {
        detail::check(function(handle_.get(), values...));
        return *this;
    }

    detail::handle<quorumlock_config, quorumlock_config_free> handle_;
};

// How a node looked when it was asked for.
struct node_status {
    node_status(const quorumlock_nodes *nodes, std::size_t index)
        : state(quorumlock_nodes_state(nodes, index)), message(text(quorumlock_nodes_message(nodes, index))),
          address(text(quorumlock_nodes_address(nodes, index))),
          state_age(quorumlock_nodes_state_age_ms(nodes, index)),
          quarantine(quorumlock_nodes_quarantine_ms(nodes, index)),
          counted(quorumlock_nodes_counted_ms(nodes, index)),
          is_connected(quorumlock_nodes_is_connected(nodes, index) != 0),
          is_durable(quorumlock_nodes_is_durable(nodes, index) != 0),
          server(text(quorumlock_nodes_server(nodes, index))), run_id(text(quorumlock_nodes_run_id(nodes, index))),
          role(quorumlock_nodes_role(nodes, index)), eviction(text(quorumlock_nodes_eviction(nodes, index)))
    {
        if (const quorumlock_fault *last = quorumlock_nodes_last_fault(nodes, index)) {
            last_fault.emplace(last);
        }
        for (std::size_t kind = 0; kind < quorumlock_nodes_fault_kinds(nodes, index); kind++) {
            faults.emplace_back(fault(quorumlock_nodes_fault(nodes, index, kind)),
                quorumlock_nodes_fault_count(nodes, index, kind));
        }
        latency.count = quorumlock_nodes_latency_count(nodes, index);
        latency.p50 = microseconds(quorumlock_nodes_latency_p50_us(nodes, index));
        latency.p99 = microseconds(quorumlock_nodes_latency_p99_us(nodes, index));
        latency.max = microseconds(quorumlock_nodes_latency_max_us(nodes, index));
    }

    struct reply_times {
        std::uint64_t count = 0;
        microseconds p50{}, p99{}, max{};
    };

    quorumlock_node_state state;
    std::string message;
    std::string address;
    milliseconds state_age;
    milliseconds quarantine;
    milliseconds counted;
    bool is_connected;
    bool is_durable;
    std::string server;
    std::string run_id;
    quorumlock_role role;
    std::string eviction;
    std::optional<fault> last_fault;
    std::vector<std::pair<fault, std::uint64_t>> faults;
    reply_times latency;
};

// The client that has a lock, as nodes said.
struct holder {
    explicit holder(const quorumlock_holder *found)
        : message(text(quorumlock_holder_message(found))), label(text(quorumlock_holder_label(found)))
    {
        if (quorumlock_holder_remaining_ms(found) != UINT64_MAX) {
            remaining = milliseconds(quorumlock_holder_remaining_ms(found));
        }
        for (std::size_t index = 0; index < quorumlock_holder_node_count(found); index++) {
            nodes.push_back(text(quorumlock_holder_node(found, index)));
        }
    }

    std::string message;
    std::string label;
    // None if its keys have no expiry.
    std::optional<milliseconds> remaining;
    std::vector<std::string> nodes;
};

// A lease as text. Any program that reads it has the lock; it is overwritten when it is destroyed.
class secret {
public:
    explicit secret(quorumlock_secret *secret) noexcept : handle_(secret) {}
    std::string_view expose() const noexcept
    {
        quorumlock_str text = quorumlock_secret_text(handle_.get());
        return std::string_view(text.data, text.length);
    }

private:
    detail::handle<quorumlock_secret, quorumlock_secret_free> handle_;
};

// A held lock without a guard, on its way elsewhere. To destroy it releases nothing.
class lease {
public:
    explicit lease(quorumlock_lease *lease) noexcept : handle_(lease) {}
    static lease from_text(std::string_view text)
    {
        quorumlock_lease *made = nullptr;
        detail::must(quorumlock_lease_from_text, text.data(), text.size(), &made);
        return lease(made);
    }

    std::string key() const { return text(quorumlock_lease_key(handle_.get())); }
    milliseconds ttl() const noexcept { return milliseconds(quorumlock_lease_ttl_ms(handle_.get())); }
    std::uint64_t fencing_token() const noexcept { return quorumlock_lease_fencing_token(handle_.get()); }
    std::chrono::system_clock::time_point end() const noexcept
    {
        return std::chrono::system_clock::time_point(milliseconds(quorumlock_lease_end_unix_ms(handle_.get())));
    }
    milliseconds remaining() const noexcept { return milliseconds(quorumlock_lease_remaining_ms(handle_.get())); }

    // Uses it up.
    secret into_text() &&
    {
        quorumlock_secret *made = nullptr;
        detail::must(quorumlock_lease_into_text, handle_.get(), &made);
        return secret(made);
    }
    quorumlock_lease *get() const noexcept { return handle_.get(); }

private:
    detail::handle<quorumlock_lease, quorumlock_lease_free> handle_;
};

// A lock that was taken. Destroying it releases the lock.
class guard {
public:
    explicit guard(quorumlock_guard *taken) noexcept : handle_(taken) {}

    std::string name() const { return text(quorumlock_guard_name(handle_.get())); }
    milliseconds remaining() const noexcept { return milliseconds(quorumlock_guard_remaining_ms(handle_.get())); }

    // Throws unless the lock may be relied on for so long.
    void ensure(milliseconds at_least) const
    {
        detail::must(quorumlock_guard_ensure, handle_.get(), detail::count(at_least));
    }

    // Greater than that of every acquisition before it: send it along with every write. 0 unless the mutex is fenced,
    // and for a lock to read.
    std::uint64_t fencing_token() const noexcept { return quorumlock_guard_fencing_token(handle_.get()); }
    std::uint64_t slot() const noexcept { return quorumlock_guard_slot(handle_.get()); }

    // Whether the lock was ours to the end, or still is: a level of a reentrant lock has ended, and not the last one,
    // or other threads of the client still read.
    bool unlock()
    {
        auto result = detail::call(quorumlock_guard_unlock, handle_.get());
        return result == QUORUMLOCK_OK || result == QUORUMLOCK_STILL_HELD;
    }

    // Whether it lasts longer now. If not, it is lost. Throws when too few nodes answer: then look at remaining().
    bool extend(milliseconds ttl)
    {
        return detail::call(quorumlock_guard_extend, handle_.get(), detail::count(ttl)) == QUORUMLOCK_OK;
    }

    // Makes a lock to write one to read.
    void downgrade() { detail::must(quorumlock_guard_downgrade, handle_.get()); }

    // For poll: readable when the lock is lost.
    int lost_descriptor()
    {
        int descriptor = -1;
        detail::must(quorumlock_guard_lost_fd, handle_.get(), &descriptor);
        return descriptor;
    }

    // Called once when the lock is lost, on whichever thread.
    void on_lost(std::function<void()> lost)
    {
        auto *owned = new std::function<void()>(std::move(lost));
        detail::must(quorumlock_guard_on_lost, handle_.get(), quorumlock_hpp_lost, static_cast<void *>(owned),
            quorumlock_hpp_forget_lost);
    }

    // Lets go of the guard and not of the lock.
    lease detach()
    {
        quorumlock_lease *made = nullptr;
        detail::must(quorumlock_guard_detach, handle_.get(), &made);
        return lease(made);
    }

private:
    detail::handle<quorumlock_guard, quorumlock_guard_free> handle_;
};

// The nodes of one quorum, and the connections to them. One for the whole program will do.
class client {
public:
    explicit client(const config &config)
    {
        quorumlock_client *made = nullptr;
        detail::must(quorumlock_client_new, config.get(), &made);
        handle_.reset(made);
    }
    client(std::initializer_list<std::string_view> nodes) : client(config(nodes)) {}

    // Makes all connections, and throws when fewer than a majority can vote.
    std::vector<node_status> connect(milliseconds timeout) const
    {
        quorumlock_nodes *made = nullptr;
        detail::must(quorumlock_client_connect, handle_.get(), detail::count(timeout), &made);
        return copied(made);
    }

    std::vector<node_status> nodes() const
    {
        quorumlock_nodes *made = nullptr;
        detail::must(quorumlock_client_nodes, handle_.get(), &made);
        return copied(made);
    }

    // Goes on with a lock that is held already, with default settings.
    guard attach(lease lease) const
    {
        quorumlock_guard *taken = nullptr;
        detail::must(quorumlock_client_attach, handle_.get(), lease.get(), &taken);
        return guard(taken);
    }

    // Waits until every node has run the releases that it is owed; throws when one has not in time. Closes nothing.
    void flush_releases(milliseconds timeout) const
    {
        detail::must(quorumlock_client_flush_releases, handle_.get(), detail::count(timeout));
    }

    // Grants no lock from now on, ends waits, and waits until all guards have gone and their locks are released; throws
    // QUORUMLOCK_SHUTDOWN_INCOMPLETE when that has not happened in time. Not for a handler of signals.
    void shutdown(milliseconds timeout) const
    {
        detail::must(quorumlock_client_shutdown, handle_.get(), detail::count(timeout));
    }

    quorumlock_client *get() const noexcept { return handle_.get(); }

private:
    static std::vector<node_status> copied(quorumlock_nodes *made)
    {
        detail::handle<quorumlock_nodes, quorumlock_nodes_free> owner(made);
        std::vector<node_status> nodes;
        for (std::size_t index = 0; index < quorumlock_nodes_count(made); index++) {
            nodes.emplace_back(made, index);
        }
        return nodes;
    }

    detail::handle<quorumlock_client, quorumlock_client_free> handle_;
};

// Ends waits from another thread.
class cancel_handle {
public:
    cancel_handle() : handle_(quorumlock_cancel_handle_new())
    {
        if (!handle_) {
            throw std::bad_alloc();
        }
    }
    void cancel() const { detail::check(quorumlock_cancel_handle_cancel(handle_.get())); }
    bool is_cancelled() const noexcept { return quorumlock_cancel_handle_is_cancelled(handle_.get()) != 0; }
    const quorumlock_cancel_handle *get() const noexcept { return handle_.get(); }

private:
    detail::handle<quorumlock_cancel_handle, quorumlock_cancel_handle_free> handle_;
};

// An owner of reentrant locks that is no thread. It serves one thread at a time.
class owner {
public:
    owner() : handle_(quorumlock_owner_new())
    {
        if (handle_.get() == nullptr) {
            throw std::bad_alloc();
        }
    }
    const quorumlock_owner *get() const noexcept { return handle_.get(); }

private:
    detail::handle<quorumlock_owner, quorumlock_owner_free> handle_;
};

// The lock of one resource, or of several. Settings go for locks that are taken from then on.
class mutex {
public:
    mutex(const client &client, std::string_view name, quorumlock_lock_kind kind = QUORUMLOCK_LOCK_PLAIN)
    {
        quorumlock_mutex *made = nullptr;
        detail::check(quorumlock_client_mutex(client.get(), name.data(), name.size(), kind, &made));
        handle_.reset(made);
    }

    // The lock of several resources: all of them or none. The name is that of all, separated by ", ".
    mutex(const client &client, std::initializer_list<std::string_view> names)
        : mutex(client, std::vector<std::string_view>(names))
    {
    }
    mutex(const client &client, const std::vector<std::string_view> &names)
    {
        std::vector<quorumlock_str> texts;
        for (std::string_view name : names) {
            texts.push_back({ name.data(), name.size() });
        }
        static const quorumlock_str none = { "", 0 };
        quorumlock_mutex *made = nullptr;
        detail::check(quorumlock_client_mutex_set(
            client.get(), texts.empty() ? &none : texts.data(), texts.size(), &made));
        handle_.reset(made);
    }

    // Permits, of which at most so many are held at once: to lock it is to acquire one.
    static mutex semaphore(const client &client, std::string_view name, std::size_t permits)
    {
        quorumlock_mutex *made = nullptr;
        detail::check(quorumlock_client_semaphore(client.get(), name.data(), name.size(), permits, &made));
        return mutex(made);
    }

    std::string name() const { return text(quorumlock_mutex_name(handle_.get())); }
    mutex &ttl(milliseconds ttl) { return set(quorumlock_mutex_set_ttl_ms, detail::count(ttl)); }
    mutex &min_hold(milliseconds time) { return set(quorumlock_mutex_set_min_hold_ms, detail::count(time)); }
    mutex &fair(bool enabled = true) { return set(quorumlock_mutex_set_fair, static_cast<int>(enabled)); }

    // An owner may take the lock again that it holds: the calling thread, or the one that is given.
    mutex &reentrant() { return set(quorumlock_mutex_set_reentrant, static_cast<const quorumlock_owner *>(nullptr)); }
    mutex &reentrant(const owner &owner) { return set(quorumlock_mutex_set_reentrant, owner.get()); }

    // Automatic extension. Each of its settings switches it on.
    mutex &watchdog(bool enabled = true) { return set(quorumlock_mutex_set_watchdog, static_cast<int>(enabled)); }
    mutex &watchdog_period(milliseconds period)
    {
        return set(quorumlock_mutex_set_watchdog_period_ms, detail::count(period));
    }
    mutex &watchdog_notify_before(milliseconds margin)
    {
        return set(quorumlock_mutex_set_watchdog_notify_before_ms, detail::count(margin));
    }
    mutex &watchdog_max_extensions(std::uint32_t extensions) { return set(quorumlock_mutex_set_watchdog_max_extensions, extensions); }
    mutex &watchdog_max_duration(milliseconds time)
    {
        return set(quorumlock_mutex_set_watchdog_max_duration_ms, detail::count(time));
    }

    // Waits without a limit, until the handle is cancelled if there is one.
    guard lock() const { return lock(nullptr); }
    guard lock(const cancel_handle &cancel) const { return lock(cancel.get()); }

    // One attempt.
    std::optional<guard> try_lock() const
    {
        quorumlock_guard *taken = nullptr;
        auto result = detail::call(quorumlock_mutex_try_lock, handle_.get(), &taken);
        return given(result, taken);
    }
    std::optional<guard> try_lock_for(milliseconds timeout) const { return try_lock_for(timeout, nullptr); }
    std::optional<guard> try_lock_for(milliseconds timeout, const cancel_handle &cancel) const
    {
        return try_lock_for(timeout, cancel.get());
    }

    // Until then at the latest, by quorumlock::now().
    std::optional<guard> try_lock_until(milliseconds deadline) const { return try_lock_until(deadline, nullptr); }
    std::optional<guard> try_lock_until(milliseconds deadline, const cancel_handle &cancel) const
    {
        return try_lock_until(deadline, cancel.get());
    }

    // Which client has the lock now, if any has.
    std::optional<quorumlock::holder> holder() const
    {
        quorumlock_holder *found = nullptr;
        if (detail::call(quorumlock_mutex_holder, handle_.get(), &found) == QUORUMLOCK_NOT_HELD) {
            return std::nullopt;
        }
        detail::handle<quorumlock_holder, quorumlock_holder_free> owner(found);
        return quorumlock::holder(found);
    }

    // Goes on with a lock that is held already, with this mutex's settings.
    guard attach(lease lease) const
    {
        quorumlock_guard *taken = nullptr;
        detail::must(quorumlock_mutex_attach, handle_.get(), lease.get(), &taken);
        return guard(taken);
    }

private:
    explicit mutex(quorumlock_mutex *made) noexcept : handle_(made) {}
    template <typename Function, typename Value> mutex &set(Function function, Value value)
    {
        detail::check(function(handle_.get(), value));
        return *this;
    }
    static std::optional<guard> given(quorumlock_result result, quorumlock_guard *taken)
    {
        return result == QUORUMLOCK_OK ? std::optional<guard>(taken) : std::nullopt;
    }
    guard lock(const quorumlock_cancel_handle *cancel) const
    {
        quorumlock_guard *taken = nullptr;
        detail::must(quorumlock_mutex_lock, handle_.get(), std::int64_t(-1), cancel, &taken);
        return guard(taken);
    }
    std::optional<guard> try_lock_for(milliseconds timeout, const quorumlock_cancel_handle *cancel) const
    {
        quorumlock_guard *taken = nullptr;
        auto limit = static_cast<std::int64_t>(detail::count(timeout));
        auto result = detail::call(quorumlock_mutex_lock, handle_.get(), limit, cancel, &taken);
        return given(result, taken);
    }
    std::optional<guard> try_lock_until(milliseconds deadline, const quorumlock_cancel_handle *cancel) const
    {
        quorumlock_guard *taken = nullptr;
        auto result
            = detail::call(quorumlock_mutex_lock_deadline, handle_.get(), detail::count(deadline), cancel, &taken);
        return given(result, taken);
    }

    detail::handle<quorumlock_mutex, quorumlock_mutex_free> handle_;
};

} // namespace quorumlock

#endif
