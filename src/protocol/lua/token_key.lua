-- A key that holds nothing but an owner token: how it is read, and released. The part behind the names of a plain lock
-- or of a permit. The key is written by one command or not at all: a restart cannot lose half of it. Errors are
-- returned, not raised: servers before Redis 7 would wrap what they raise.
-- KEYS[1]  the key
-- ARGV     of a release, as of queue.lua
-- returns  of a release in whose queue no call waits, what queue.lua returns; otherwise only the error that keeps the
--          key from being read or deleted
local owner = redis.pcall('GET', key)
if type(owner) == 'table' then
  if string.sub(owner.err, 1, 9) ~= 'WRONGTYPE' then
    return owner
  end
  owner = ''
end
local ours = owner == ARGV[2]
if ARGV[1] == 'release' then
  if ours then
    local gone = redis.pcall('DEL', key)
    if type(gone) == 'table' then
      return gone
    end
    owner = false
  end
  -- No call waits, or the lock is held by another: most releases end here, before any function is defined.
  if not ARGV[3] and (owner or redis.pcall('EXISTS', queue) == 0) then
    return ours and 1 or 0
  end
end
