/*
 * The same as quickstart.c, with handles that free themselves.
 *
 *     c++ -std=c++17 -Isrc/ffi examples/c/quickstart.cpp -Ltarget/release -lquorumlock -Wl,-rpath,target/release \
 *         -o quickstart
 *     ./quickstart redis://127.0.0.1:6379 redis://127.0.0.1:6380 redis://127.0.0.1:6381
 */
#include "quorumlock.hpp"
#include <iostream>

int main(int count, char **arguments)
try {
    quorumlock::config config;
    for (int index = 1; index < count; index++) {
        config.add_node(arguments[index]);
    }
    quorumlock::client client(config.set("node_timeout", "1s"));
    quorumlock::mutex order(client, "orders/42", QUORUMLOCK_LOCK_FENCED);
    order.ttl(std::chrono::seconds(5)).watchdog();

    auto guard = order.try_lock_for(std::chrono::seconds(1));
    if (!guard) {
        std::cout << "another client had it for the whole second\n";
        return 1;
    }
    guard->ensure(std::chrono::seconds(2));
    std::cout << "ours for " << guard->remaining().count() << " ms, and extended by itself; number "
              << guard->fencing_token() << '\n';
    if (order.try_lock()) {
        std::cout << "another client has got it as well\n";
        return 1;
    }
    if (!guard->unlock()) {
        std::cout << "it took too long: another client may have had it too\n";
        return 1;
    }
    std::cout << "released in time\n";
    return 0;
} catch (const quorumlock::failure &failure) {
    std::cerr << failure.what() << '\n';
    return 2;
}
