// Every wrapper of quorumlock.hpp, against real nodes.
//
//     wrappers URL...
#include "quorumlock.hpp"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                               \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

using namespace std::chrono_literals;

// The result of a call that must fail.
template <typename Action> quorumlock_result result_of(Action action)
{
    try {
        action();
    } catch (const quorumlock::failure &failure) {
        CHECK(std::string_view(failure.what()) != "");
        return failure.result();
    }
    return QUORUMLOCK_OK;
}

template <typename Condition> bool soon(Condition condition)
{
    for (int tries = 0; tries < 1000 && !condition(); tries++) {
        std::this_thread::sleep_for(10ms);
    }
    return condition();
}

struct log {
    std::mutex mutex;
    std::vector<quorumlock_kind> kinds;

    void add(const quorumlock::event &event)
    {
        std::lock_guard<std::mutex> hold(mutex);
        kinds.push_back(event.kind());
        CHECK(!event.message().empty());
        CHECK(event.kind() != QUORUMLOCK_EVENT_ACQUIRED || (event.attempts() >= 1 && event.round_trips() >= 1));
        CHECK(event.kind() != QUORUMLOCK_EVENT_ACQUIRED || event.waited() > 0us);
        CHECK(event.kind() != QUORUMLOCK_EVENT_ATTEMPT_LOST || event.granted() + event.refused() > 0);
        CHECK(event.kind() == QUORUMLOCK_EVENT_ACQUIRED || event.position() == 0);
        CHECK(event.told() + event.unasked() + event.challenges() <= event.attempts());
        CHECK(event.kind() != QUORUMLOCK_EVENT_EXTENDED || event.ttl() > 0ms);
        CHECK(event.kind() != QUORUMLOCK_EVENT_NODE_UP || (event.addresses().size() == 1 && event.name().empty()));
        CHECK(event.kind() != QUORUMLOCK_EVENT_NODE_DOWN || event.faults().size() == 1);
        CHECK(event.kind() != QUORUMLOCK_EVENT_RELEASED || !event.name().empty());
        CHECK(event.kind() == QUORUMLOCK_EVENT_NODE_MAY_EVICT || event.policy().empty());
        CHECK(!event.is_automatic() || event.kind() == QUORUMLOCK_EVENT_EXTENDED);
        CHECK(!event.is_freed() || event.remaining() == 0ms);
        CHECK(event.severity() != QUORUMLOCK_SEVERITY_NONE);
        CHECK((event.reason() != QUORUMLOCK_REASON_NONE) == (event.kind() == QUORUMLOCK_EVENT_GAVE_UP));
        // What is attached and released at once may be held for less than a microsecond.
        CHECK(event.kind() != QUORUMLOCK_EVENT_RELEASED || event.held() > 0us || event.name() == "moving");
        CHECK(event.kind() != QUORUMLOCK_EVENT_WAITING || !event.has_waited());
    }
    bool has(quorumlock_kind kind)
    {
        std::lock_guard<std::mutex> hold(mutex);
        for (auto known : kinds) {
            if (known == kind) {
                return true;
            }
        }
        return false;
    }
};

static void failures(const char *url)
{
    try {
        quorumlock::client nothing(quorumlock::config {});
        CHECK(!"a client");
    } catch (const quorumlock::failure &failure) {
        CHECK(failure.result() == QUORUMLOCK_CONFIG && failure.is_permanent());
    }
    CHECK(result_of([] { quorumlock::config().set("restart_policy", "none"); }) == QUORUMLOCK_CONFIG);
    quorumlock::client dead({"redis://127.0.0.1:1"});
    try {
        quorumlock::mutex(dead, "x").try_lock();
        CHECK(!"a lock");
    } catch (const quorumlock::failure &failure) {
        CHECK(failure.result() == QUORUMLOCK_UNAVAILABLE && failure.faults().size() == 1 && !failure.is_permanent());
        const quorumlock::fault &fault = failure.faults().front();
        CHECK(fault.address == "127.0.0.1:1" && fault.phase == QUORUMLOCK_PHASE_CONNECT && fault.number == -1);
        CHECK(fault.cause == QUORUMLOCK_CAUSE_REFUSED && fault.message.find(fault.address) == 0);
    }
    auto status = dead.nodes().front();
    CHECK(status.state == QUORUMLOCK_NODE_DOWN && status.last_fault->cause == QUORUMLOCK_CAUSE_REFUSED);
    CHECK(result_of([&] { dead.connect(1s); }) == QUORUMLOCK_UNAVAILABLE);
    quorumlock::client alive({url});
    CHECK(alive.connect(10s).front().state == QUORUMLOCK_NODE_VOTING);
    CHECK(quorumlock::mutex(alive, "x").try_lock()->unlock());
}

static void nodes(const quorumlock::client &client, std::size_t count)
{
    CHECK(client.nodes().size() == count);
    CHECK(soon([&] {
        for (const auto &node : client.nodes()) {
            if (node.state != QUORUMLOCK_NODE_VOTING) {
                return false;
            }
        }
        return true;
    }));
    std::size_t durable = 0;
    for (const auto &node : client.nodes()) {
        CHECK(node.counted == 0ms || node.message.find(", votes counted for ") != std::string::npos);
        CHECK(node.is_connected && node.quarantine == 0ms && node.state_age >= 0ms && !node.last_fault);
        CHECK(node.message.find(node.address) == 0 && !node.server.empty() && node.run_id.size() == 8);
        CHECK(node.role == QUORUMLOCK_ROLE_MASTER && node.eviction.empty());
        durable += node.is_durable;
    }
    CHECK(durable == 1);
}

static void levels(const quorumlock::client &client)
{
    quorumlock::owner request;
    quorumlock::mutex plain(client, "levels"), by_thread(client, "levels"), by_owner(client, "levels");
    by_thread.reentrant();
    by_owner.reentrant(request);
    for (const auto *mutex : {&by_thread, &by_owner}) {
        auto outer = mutex->lock(), inner = mutex->lock();
        CHECK(!plain.try_lock() && outer.unlock() && inner.remaining() > 0ms && inner.unlock());
        CHECK(inner.remaining() == 0ms);
    }
}

static void logs_in(const char *url)
{
    auto refused = [url](quorumlock::provider provider) {
        quorumlock::config config({url});
        quorumlock::client client(config.set("node_timeout", "1s").credentials(std::move(provider)));
        try {
            quorumlock::mutex(client, "login").try_lock();
        } catch (const quorumlock::failure &failure) {
            return std::string(failure.what());
        }
        return std::string();
    };
    auto fails = [](std::string_view) -> quorumlock::credentials { throw 1; };
    CHECK(refused(fails).find("no credentials: the provider returned an error") != std::string::npos);
    // The server has no password set, and says so.
    auto found = [](std::string_view) { return quorumlock::credentials {std::nullopt, "hunter2", 60s}; };
    CHECK(refused(found).find("the server has none set") != std::string::npos);
}

static void readers(const quorumlock::client &client)
{
    quorumlock::mutex read(client, "readers", QUORUMLOCK_LOCK_READ);
    quorumlock::mutex write(client, "readers", QUORUMLOCK_LOCK_WRITE);
    auto guard = write.lock();
    CHECK(!read.try_lock());
    guard.downgrade();
    auto second = read.try_lock();
    CHECK(second && !write.try_lock() && second->unlock() && guard.unlock());
    CHECK(result_of([&] { write.lock().downgrade(); read.lock().downgrade(); }) == QUORUMLOCK_CONFIG);
}

static void sets(const quorumlock::client &client)
{
    quorumlock::mutex set(client, {"b", "a", "b"}), single(client, "b");
    CHECK(set.name() == "a, b");
    auto guard = set.lock();
    CHECK(!single.try_lock() && guard.unlock() && single.lock().unlock());
    CHECK(result_of([&] { quorumlock::mutex(client, std::vector<std::string_view>()).lock(); }) == QUORUMLOCK_CONFIG);
}

static void permits(const quorumlock::client &client)
{
    auto doors = quorumlock::mutex::semaphore(client, "doors", 2);
    auto first = doors.lock(), second = doors.lock();
    CHECK(first.slot() + second.slot() == 1 && !doors.try_lock());
    CHECK(first.unlock() && doors.lock().unlock() && second.unlock());
}

static void holders(const quorumlock::client &client, const char *url)
{
    quorumlock::mutex mutex(client, "holders");
    CHECK(!mutex.holder());
    quorumlock::mutex standing(client, "standing");
    CHECK(standing.min_hold(30s).lock().unlock() && standing.holder() && !standing.try_lock());
    {
        auto guard = mutex.lock();
        auto holder = mutex.holder();
        CHECK(holder && holder->label == "wrappers@here" && holder->message.find(holder->label) == 0);
        CHECK(holder->remaining && *holder->remaining > 0ms && !holder->nodes.empty());
    }
    quorumlock::config config({url});
    config.label_here();
    quorumlock::client here(config);
    quorumlock::mutex own(here, "here");
    auto guard = own.lock();
    CHECK(own.holder()->label.find('/') != std::string::npos);
    CHECK(result_of([&] { config.set("label", "two words"); }) == QUORUMLOCK_CONFIG);
}

static void waits(const quorumlock::client &client)
{
    quorumlock::mutex mutex(client, "waits");
    quorumlock::cancel_handle cancel, unused;
    auto held = mutex.lock(unused);
    CHECK(mutex.name() == "waits" && held.name() == "waits");
    CHECK(!mutex.try_lock() && !mutex.try_lock_for(1ms) && !mutex.try_lock_until(quorumlock::now() + 1ms));
    CHECK(!mutex.try_lock_for(-1ms) && !mutex.try_lock_for(1ms, unused));
    CHECK(!mutex.try_lock_until(quorumlock::now(), unused) && !unused.is_cancelled());
    std::thread waiting([&] { CHECK(result_of([&] { mutex.lock(cancel); }) == QUORUMLOCK_CANCELLED); });
    cancel.cancel();
    waiting.join();
    CHECK(cancel.is_cancelled());
    CHECK(held.unlock() && !held.unlock() && held.remaining() == 0ms);
    CHECK(result_of([&] { held.ensure(0ms); }) == QUORUMLOCK_NOT_HELD);
    CHECK(result_of([&] { held.detach(); }) == QUORUMLOCK_NOT_HELD);
    CHECK(result_of([&] { held.lost_descriptor(); }) == QUORUMLOCK_NOT_HELD);
    CHECK(result_of([&] { held.on_lost([] {}); }) == QUORUMLOCK_NOT_HELD);
    CHECK(mutex.try_lock_for(5s)->unlock());
}

static void holding(const quorumlock::client &client)
{
    quorumlock::mutex mutex(client, "holding", QUORUMLOCK_LOCK_FENCED);
    mutex.ttl(30s);
    auto first = mutex.lock();
    auto number = first.fencing_token();
    CHECK(number > 0 && first.remaining() > 20s);
    first.ensure(20s);
    CHECK(result_of([&] { first.ensure(40s); }) == QUORUMLOCK_LEASE_TOO_SHORT);
    CHECK(first.extend(50s) && first.remaining() > 40s && first.unlock());
    mutex.ttl(300ms);
    std::atomic<int> losses {0};
    auto owned = std::make_shared<int>(0);
    auto second = mutex.lock();
    CHECK(second.fencing_token() > number);
    second.on_lost([&losses, owned] {
        losses++;
        throw owned; // It must not reach the library.
    });
    pollfd lost = {second.lost_descriptor(), POLLIN, 0};
    CHECK(poll(&lost, 1, 10000) == 1 && soon([&] { return losses == 1 && owned.use_count() == 1; }));
    CHECK(result_of([&] { second.ensure(0ms); }) == QUORUMLOCK_LEASE_LOST && !second.extend(1s) && !second.unlock());
    // A busy machine may let the watchdog wait for hundreds of milliseconds.
    mutex.ttl(2s).watchdog().watchdog_period(50ms).watchdog_notify_before(20ms).watchdog_max_extensions(1000).watchdog_max_duration(60s);
    auto watched = mutex.lock();
    std::this_thread::sleep_for(2500ms);
    watched.ensure(1ms);
    CHECK(watched.unlock());
    mutex.watchdog(false).fair();
    CHECK(mutex.lock().fencing_token() > 0);
    quorumlock::mutex plain(client, "holding");
    CHECK(plain.fair().lock().fencing_token() == 0);
}

static void moving(const quorumlock::client &client)
{
    quorumlock::mutex mutex(client, "moving", QUORUMLOCK_LOCK_FENCED);
    mutex.ttl(30s);
    auto guard = mutex.lock();
    auto number = guard.fencing_token();
    auto lease = guard.detach();
    CHECK(lease.key() == "quorumlock-fence:w:moving" && lease.ttl() == 30s && lease.fencing_token() == number);
    CHECK(lease.remaining() > 20s && lease.end() > std::chrono::system_clock::now() + 20s);
    auto secret = std::move(lease).into_text();
    CHECK(result_of([&] { client.attach(std::move(lease)); }) == QUORUMLOCK_CONSUMED);
    CHECK(result_of([] { quorumlock::lease::from_text("nonsense"); }) == QUORUMLOCK_CONFIG);
    auto again = mutex.attach(quorumlock::lease::from_text(secret.expose()));
    CHECK(again.fencing_token() == number);
    auto last = client.attach(again.detach());
    CHECK(last.name() == "moving" && last.unlock());
}

static void ending(const char *url)
{
    quorumlock::client client({url}), other({url});
    auto held = quorumlock::mutex(client, "ending").lock();
    auto theirs = quorumlock::mutex(other, "theirs").lock();
    auto waiting = QUORUMLOCK_OK;
    std::thread thread([&] { waiting = result_of([&] { quorumlock::mutex(client, "theirs").lock(); }); });
    try {
        client.shutdown(0ms);
        CHECK(!"a guard exists");
    } catch (const quorumlock::failure &failure) {
        CHECK(failure.result() == QUORUMLOCK_SHUTDOWN_INCOMPLETE);
        CHECK(std::string_view(failure.what()).find("still held: \"ending\"") != std::string_view::npos);
    }
    thread.join();
    CHECK(waiting == QUORUMLOCK_SHUT_DOWN);
    CHECK(result_of([&] { quorumlock::mutex(client, "other").try_lock(); }) == QUORUMLOCK_SHUT_DOWN);
    CHECK(held.extend(20s) && held.unlock());
    client.shutdown(10s);
    CHECK(theirs.unlock() && quorumlock::mutex(other, "ending").lock().unlock());
}

// A time that is over is no time: a node that never replies has not run a release.
static void flushes(const char *first, const char *second)
{
    int silent = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto *where = reinterpret_cast<sockaddr *>(&address);
    CHECK(bind(silent, where, length) == 0 && listen(silent, 8) == 0 && getsockname(silent, where, &length) == 0);
    auto third = "redis://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    quorumlock::client client({ first, second, third });
    CHECK(quorumlock::mutex(client, "flushes").ttl(5s).lock().unlock());
    CHECK(result_of([&] { client.flush_releases(-1ms); }) == QUORUMLOCK_UNAVAILABLE);
    close(silent);
}

int main(int count, char **arguments)
{
    CHECK(count > 2);
    CHECK(quorumlock::version_number() == QUORUMLOCK_VERSION_MAJOR * 65536 + QUORUMLOCK_VERSION_MINOR * 256
            + QUORUMLOCK_VERSION_PATCH);
    CHECK(!quorumlock::version().empty() && quorumlock::text(QUORUMLOCK_HELD) != quorumlock::text(QUORUMLOCK_OK));
    failures(arguments[1]);
    logs_in(arguments[1]);
    flushes(arguments[1], arguments[2]);
    auto told = std::make_shared<log>();
    {
        quorumlock::config config;
        for (int index = 1; index < count - 1; index++) {
            config.add_node(arguments[index]);
        }
        config.add_node(std::string(arguments[count - 1]) + "?durable=true").label_here();
        for (auto [name, value] : {std::pair {"prefix", "w:"}, {"node_timeout", "1s"}, {"label", "wrappers@here"},
                 {"retry_delay", "1ms,50ms"}, {"unavailable_after", "2s"}, {"spin", "0"}}) {
            config.set(name, value);
        }
        quorumlock::counters counters('/');
        config.count(counters);
        config.observe([told](const quorumlock::event &event) {
            told->add(event);
            throw 1; // It must not reach the library.
        });
        quorumlock::client client(config);
        CHECK(setenv("LOCKS_NODES", arguments[1], 1) == 0);
        quorumlock::client from_env(quorumlock::config::from_env("LOCKS_"));
        CHECK(from_env.connect(10s).size() == 1);
        waits(client);
        levels(client);
        readers(client);
        sets(client);
        permits(client);
        holders(client, arguments[1]);
        ending(arguments[1]);
        holding(client);
        moving(client);
        nodes(client, static_cast<std::size_t>(count - 1));
        CHECK(counters.text().find("\nquorumlock_nodes 3\n") != std::string::npos);
        CHECK(counters.text().find(",outcome=\"acquired\"} ") != std::string::npos);
    }
    CHECK(soon([&] { return told.use_count() == 1; }));
    for (auto kind : {QUORUMLOCK_EVENT_ACQUIRED, QUORUMLOCK_EVENT_ATTEMPT_LOST, QUORUMLOCK_EVENT_EXTENDED,
             QUORUMLOCK_EVENT_LOST_TIME, QUORUMLOCK_EVENT_NODE_UP, QUORUMLOCK_EVENT_RELEASED}) {
        CHECK(told->has(kind));
    }
    std::puts("every wrapper works");
    return 0;
}
