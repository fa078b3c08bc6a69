// quorumlock for C++17: handles that free themselves, and failures that are thrown. A page to read, copy and change.
//
//     quorumlock::client client({"redis://10.0.0.1:6379", "redis://10.0.0.2:6379", "redis://10.0.0.3:6379"});
//     quorumlock::mutex order(client, "orders/42");
//     if (auto guard = order.try_lock_for(std::chrono::seconds(1))) {
//         ...                                 // ours, while guard->remaining() is more than zero
//         bool was_alone = guard->unlock();   // or let it go out of scope
//     }
//
// "Somebody else has it" is an empty optional. A guard that goes out of scope releases its lock without waiting for answers.
#ifndef QUORUMLOCK_HPP
#define QUORUMLOCK_HPP

#include <chrono>
#include <initializer_list>
#include <memory>
#include <optional>
#include <quorumlock.h>
#include <stdexcept>
#include <string>
#include <string_view>

namespace quorumlock {

using milliseconds = std::chrono::milliseconds;

class failure : public std::runtime_error {
public:
    failure(quorumlock_result result, const std::string &message) : std::runtime_error(message), result_(result) {}
    quorumlock_result result() const noexcept { return result_; }

private:
    quorumlock_result result_;
};

inline std::string text(quorumlock_str text) { return std::string(text.data, text.length); }

// Throws what is no answer.
inline quorumlock_result check(quorumlock_result result, quorumlock_error *error = nullptr)
{
    std::unique_ptr<quorumlock_error, decltype(&quorumlock_error_free)> owner(error, quorumlock_error_free);
    if (result < QUORUMLOCK_CONFIG) {
        return result;
    }
    throw failure(result, text(error ? quorumlock_error_message(error) : quorumlock_result_text(result)));
}

template <typename T, void (*Free)(T *)> struct freed_by {
    void operator()(T *handle) const noexcept { Free(handle); }
};
template <typename T, void (*Free)(T *)> using handle = std::unique_ptr<T, freed_by<T, Free>>;

class client {
public:
    template <typename Nodes> explicit client(const Nodes &nodes, milliseconds node_timeout = milliseconds(50))
    {
        handle<quorumlock_config, quorumlock_config_free> config(quorumlock_config_new());
        for (std::string_view node : nodes) {
            check(quorumlock_config_add_node(config.get(), node.data(), node.size()));
        }
        check(quorumlock_config_set_node_timeout_ms(config.get(), static_cast<uint64_t>(node_timeout.count())));
        quorumlock_client *made = nullptr;
        quorumlock_error *error = nullptr;
        auto result = quorumlock_client_new(config.get(), &made, &error);
        check(result, error);
        handle_.reset(made);
    }
    client(std::initializer_list<std::string_view> nodes) : client(nodes, milliseconds(50)) {}
    quorumlock_client *get() const noexcept { return handle_.get(); }

private:
    handle<quorumlock_client, quorumlock_client_free> handle_;
};

class guard {
public:
    explicit guard(quorumlock_guard *taken) noexcept : handle_(taken) {}

    milliseconds remaining() const noexcept { return milliseconds(quorumlock_guard_remaining_ms(handle_.get())); }

    // Greater than that of every acquisition before it: send it along with every write. 0 unless the mutex is fenced.
    uint64_t fencing_token() const noexcept { return quorumlock_guard_fencing_token(handle_.get()); }

    // Whether the lock was ours to the end.
    bool unlock()
    {
        quorumlock_error *error = nullptr;
        auto result = quorumlock_guard_unlock(handle_.get(), &error);
        return check(result, error) == QUORUMLOCK_OK;
    }

    // Whether it lasts longer now. If not, it is lost. Throws when too few nodes answer: then look at remaining().
    bool extend(milliseconds ttl)
    {
        quorumlock_error *error = nullptr;
        auto result = quorumlock_guard_extend(handle_.get(), static_cast<uint64_t>(ttl.count()), &error);
        return check(result, error) == QUORUMLOCK_OK;
    }

    // For poll: readable when the lock is lost.
    int lost_descriptor()
    {
        int descriptor = -1;
        quorumlock_error *error = nullptr;
        auto result = quorumlock_guard_lost_fd(handle_.get(), &descriptor, &error);
        check(result, error);
        return descriptor;
    }

private:
    handle<quorumlock_guard, quorumlock_guard_free> handle_;
};

class mutex {
public:
    mutex(const client &client, std::string_view name)
    {
        quorumlock_mutex *made = nullptr;
        check(quorumlock_mutex_new(client.get(), name.data(), name.size(), &made));
        handle_.reset(made);
    }

    mutex &ttl(milliseconds ttl)
    {
        check(quorumlock_mutex_set_ttl_ms(handle_.get(), static_cast<uint64_t>(ttl.count())));
        return *this;
    }
    mutex &fenced(bool enabled)
    {
        check(quorumlock_mutex_set_fenced(handle_.get(), enabled));
        return *this;
    }
    mutex &watchdog(bool enabled)
    {
        check(quorumlock_mutex_set_watchdog(handle_.get(), enabled));
        return *this;
    }

    guard lock(quorumlock_cancel_handle *cancel = nullptr)
    {
        quorumlock_guard *taken = nullptr;
        quorumlock_error *error = nullptr;
        auto result = quorumlock_mutex_lock(handle_.get(), cancel, &taken, &error);
        check(result, error);
        return guard(taken);
    }
    std::optional<guard> try_lock_for(milliseconds timeout, quorumlock_cancel_handle *cancel = nullptr)
    {
        quorumlock_guard *taken = nullptr;
        quorumlock_error *error = nullptr;
        auto result = quorumlock_mutex_lock_timeout(
            handle_.get(), static_cast<uint64_t>(timeout.count()), cancel, &taken, &error);
        return check(result, error) == QUORUMLOCK_OK ? std::optional<guard>(taken) : std::nullopt;
    }
    std::optional<guard> try_lock() { return try_lock_for(milliseconds(0)); }

private:
    handle<quorumlock_mutex, quorumlock_mutex_free> handle_;
};

} // namespace quorumlock

#endif
