-- Compare and delete: frees the key if, and only if, it still holds our token, and publishes a hint for the waiters.
-- KEYS[1]  the lock's key
-- ARGV[1]  the owner token
-- ARGV[2]  what the name of the channel begins with on which waiters listen, the key being the rest; without it,
--          no hint is published
-- ARGV[3]  the hint
-- returns  0 when the key was not ours; when it was and is gone now, 1, or 2 when publishing is denied, or 2 and the
--          number of subscribers
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
local gone = redis.call('DEL', KEYS[1])
if not ARGV[2] then
  return gone
end
local heard = redis.pcall('PUBLISH', ARGV[2] .. KEYS[1], ARGV[3])
if type(heard) == 'table' then
  return 2
end
return heard > 0 and 2 + heard or gone
