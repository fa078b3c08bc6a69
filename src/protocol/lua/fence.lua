-- A fenced lock: one key, which is written by one command or not at all, by comparing its owner. Its value is "fence
-- deadline owner": the last fence that was given out here, until when the key is held (milliseconds of this server's
-- clock, the last one included), and by which owner token; no owner means free. It is free as well when the deadline
-- has passed. A space and a label of the holder may follow, 1 to 64 visible ASCII characters, which are not compared.
-- An acquisition writes its own label or none, so that no holder has the label of another one; all else keeps it.
-- The key itself outlives the lock, to keep the fence. What cannot be read so is no fenced lock, and is left alone.
-- Numbers are exact up to 2^53 - 1 here: one more than 2^53 is 2^53, and a fence would be given out twice.
-- A fence counts microseconds, and starts at a client's clock. One that is more than a day and a minute after this
-- server's clock is damage, or comes from a wrong clock: it is neither given out nor raised to, and nothing is written.
-- So it does not spread to other nodes, and the key's own expiry removes it.
-- A server whose memory is full refuses SET as the first write of a script, and no later one. A release then sets the
-- key's expiry first, to what SET sets it to: so it is run there as well, and what it stores is shorter than what was
-- there. A restart that loses these two writes leaves the key held until its deadline, with its fence.
-- Errors are returned, not raised: servers before Redis 7 would wrap what they raise.
-- KEYS[1]  the lock's key
-- ARGV[1]  what to do: acquire, extend, raise or release
-- ARGV[2]  the owner token; a space and the label of the holder, if it has one
-- ARGV[3]  how long the key is kept from now on, in milliseconds
-- ARGV[4]  acquire, extend: how long it is to be held from now on, in milliseconds; raise: the fence to be had at
--          least; release: what the name of the channel begins with on which waiters listen, the key being the rest, or
--          nothing: no hint is published
-- ARGV[5]  acquire: the fence to be had at least, a clock in microseconds; counts up to a minute after this server's
--          clock; release: the hint
-- returns  acquire: the fence as a bulk string; otherwise 1: done (release: 2 when publishing is denied, 2 and the
--          number of subscribers)
--          0: it is free (extend: it may be taken again), -1: another token holds it, -2: the value cannot be read,
--          -3: the fence is too far ahead of the clock (acquire, raise),
--          -4 - n: another token holds it (acquire), through the nth millisecond from now
local most = 9007199254740991
local minute, day = 60000000, 86400000000
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  if string.sub(value.err, 1, 9) == 'WRONGTYPE' then
    return -2
  end
  return value
end
local fence, deadline, owner, label = 0, 0, '', ''
if value then
  fence, deadline, owner, label = string.match(value, '^([1-9]%d*) (%d+) ([0-9a-f]*)(.*)$')
  fence, deadline = tonumber(fence or ''), tonumber(deadline or '')
  if not fence or fence > most or deadline > most or (owner ~= '' and #owner ~= 40)
    or (label ~= '' and (#label > 65 or not string.find(label, '^ [!-~]+$')))
    or string.format('%.0f %.0f %s%s', fence, deadline, owner, label) ~= value then
    return -2
  end
end
local what, token = ARGV[1], string.sub(ARGV[2], 1, 40)
local ours = owner == token
local answer = 1
local clock, greatest
if what ~= 'release' then
  local time = redis.pcall('TIME')
  if time.err then
    return time
  end
  clock = time[1] * 1000000 + time[2]
  greatest = math.min(clock + minute + day, most)
end
if what == 'acquire' or what == 'extend' then
  local now = math.floor(clock / 1000)
  local is_held = owner ~= '' and deadline >= now
  if is_held and not ours then
    return what == 'acquire' and now - deadline - 4 or -1
  end
  if what == 'extend' and not is_held then
    return 0
  end
  if what == 'acquire' then
    if is_held then
      return string.format('%.0f', fence)
    end
    fence = math.max(fence + 1, math.min(tonumber(ARGV[5]), clock + minute))
    if fence > greatest then
      return -3
    end
    answer = string.format('%.0f', fence)
    label = string.sub(ARGV[2], 41)
  end
  deadline, owner = now + ARGV[4], token
elseif not ours then
  return owner == '' and 0 or -1
elseif what == 'raise' then
  fence = math.max(fence, tonumber(ARGV[4]))
  if fence > greatest then
    return -3
  end
else
  deadline, owner = 0, ''
end
local function store()
  return redis.pcall('SET', KEYS[1], string.format('%.0f %.0f %s%s', fence, deadline, owner, label), 'PX', ARGV[3])
end
local stored = store()
if stored.err and what == 'release' and redis.pcall('PEXPIRE', KEYS[1], ARGV[3]) == 1 then
  stored = store()
end
if stored.err then
  return stored
end
if what ~= 'release' or not ARGV[4] then
  return answer
end
local heard = redis.pcall('PUBLISH', ARGV[4] .. KEYS[1], ARGV[5])
if type(heard) == 'table' then
  return 2
end
return heard > 0 and 2 + heard or answer
