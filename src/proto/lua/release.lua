-- Compare and delete: frees the key if, and only if, it still holds our token.
-- KEYS[1]  the lock's key
-- ARGV[1]  the owner token
-- returns  1 when the key was ours and is gone now, 0 when it was not ours
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
