-- The key of a fenced lock, as each script reads and writes it: the first part of those scripts. The key is written by
-- one command or not at all. Its value is "fence deadline owner": the last fence that was given out here, until when
-- the key is held (milliseconds of this server's clock, the last one included), and by which owner token; no owner
-- means free. It is free as well when the deadline has passed. A space and a label of the holder may follow, 1 to 64
-- visible ASCII characters, and behind another space what a later version adds: neither is compared. An acquisition
-- writes its own or none, so that no holder has the label of another one; all else keeps them. The key itself outlives
-- the lock, to keep the fence. What cannot be read so is no fenced lock, and is left alone: `fence` is nil then.
-- Numbers are exact up to 2^53 - 1 here: one more than 2^53 is 2^53, and a fence would be given out twice.
-- A fence counts microseconds, and starts at a client's clock. One that is more than a day and a minute after this
-- server's clock is damage, or comes from a wrong clock: it is neither given out nor raised to, and nothing is written.
-- So it does not spread to other nodes, and the key's own expiry removes it.
-- A server whose memory is full refuses SET as the first write of a script, and no later one. An extension, a raise and
-- a release set the key's expiry first then, to what SET sets it to: so they are run there as well, and what they store
-- is hardly longer than what was there. A restart that loses these two writes, or the second one, leaves the key held
-- until its deadline, with its fence.
-- KEYS[1]  the lock's key
-- ARGV     as of the part after this one
-- returns  only the error that keeps the key from being read
local value = redis.pcall('GET', KEYS[1])
local most, minute, day = 9007199254740991, 60000000, 86400000000
local fence, deadline, owner, label = 0, 0, '', ''
if type(value) == 'table' then
  if string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then
    return value
  end
  fence = nil
elseif value then
  fence, deadline, owner, label = string.match(value, '^([1-9]%d*) (%d+) ([0-9a-f]*)(.*)$')
  fence, deadline = tonumber(fence or ''), tonumber(deadline or '')
  if not fence or fence > most or deadline > most or (owner ~= '' and #owner ~= 40)
    or (label ~= '' and (#label > 256 or not string.find(label, '^ [ -~]+$')))
    or string.format('%.0f %.0f %s%s', fence, deadline, owner, label) ~= value then
    fence = nil
  end
end
local function is_ahead(clock)
  return fence > math.min(clock + minute + day, most)
end
local function store(retention)
  return redis.pcall('SET', KEYS[1], string.format('%.0f %.0f %s%s', fence, deadline, owner, label), 'PX', retention)
end
local function acquire(clock, signature, ttl, least, retention)
  fence = math.max(fence + 1, math.min(tonumber(least), clock + minute))
  if is_ahead(clock) then
    return -3
  end
  deadline, owner, label = math.floor(clock / 1000) + ttl, string.sub(signature, 1, 40), string.sub(signature, 41)
  local stored = store(retention)
  return stored.err and stored or string.format('%.0f', fence)
end
local function rewrite(retention)
  local stored = store(retention)
  if stored.err and redis.pcall('PEXPIRE', KEYS[1], retention) == 1 then
    stored = store(retention)
  end
  return stored
end
local function release(retention)
  deadline, owner = 0, ''
  return rewrite(retention)
end
