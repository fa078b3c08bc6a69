-- Compare and extend: lets the key live longer if, and only if, it still holds our token. It writes nothing else, so it
-- works when memory is full, and it never creates a key. Errors are returned, not raised: servers before Redis 7 would
-- wrap what they raise, and WRONGTYPE would look like another failure.
-- KEYS[1]  the lock's key
-- ARGV[1]  the owner token
-- ARGV[2]  how long it is to live from now on, in milliseconds
-- returns  1 when the key was ours and lives on, 0 when there is no such key, -1 when it holds another token
local owner = redis.pcall('GET', KEYS[1])
if not owner then
  return 0
end
if type(owner) == 'table' then
  return owner
end
if owner ~= ARGV[1] then
  return -1
end
return redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
