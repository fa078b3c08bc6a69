-- A read-write lock: the part of its script that is about the lock's key. queue.lua is the part behind it.
-- The key is written by one command or not at all. Its value is "w deadline token" while a writer has the lock, or "r
-- deadline:token deadline:token ..." while readers have it. In front of that, or alone, is "f fence deadline", if a
-- writer asked for a number: the last one that was given out here, and until when it is kept. A deadline is the last
-- millisecond of this server's clock that counts. Each hold ends by itself, so that one of a reader that has crashed
-- lasts no longer than its own time, and no hold changes the end of another one. The key expires with the last of them.
-- A "+" behind a space, or in front, begins what a later version adds: the next writing drops it. What else cannot be
-- read is left alone.
-- A read is granted while no writer holds the lock and no entry of one is in front, and there is room. A write is
-- granted when no one holds it and no entry is in front. An extension never shortens a hold, never sets one again that
-- has ended, and never makes a reader a writer; a writer it may make a reader.
-- A writer that asks for a number is given a greater one than the last with its hold, and may raise it to what other
-- nodes have given: by an extension, while its hold is there and is a writer's. All others keep the number as it is.
-- Numbers are as those in fence_key.lua, and one that is too far ahead of the clock is treated as there.
-- A server whose memory is full refuses SET as the first write of a script, and no later one. To extend and to release
-- then set the key's expiry first, to what SET sets it to, and so they are run there as well.
-- Errors are returned, not raised: servers before Redis 7 would wrap what they raise.
-- KEYS[1]  the lock's key
-- ARGV[1]  the verb: acquire, extend, or one of queue.lua
--   acquire  takes the lock if no hold is in the way, whichever calls wait.  extend  lets a hold last longer.  keep
--   ends it after that time, sooner or later than it would: of a release that comes too early. Otherwise as extend.
--   [2] the owner token  [3] for how long to hold the lock from now on, in milliseconds  [4] r or w, what the client is
--   from now on  [5] of a writer with a number: for how long that is kept from now on, in milliseconds  [6] acquire
--   with
--   [5]: the number to be had at least, a clock in microseconds; counts up to a minute after this server's clock;
--   extend: the number to raise it to, or nothing
--   take: [8], [9], [10] as [4], [5], [6] of acquire
-- returns  acquire and take with a number: the number as a bulk string; otherwise 1: done
--          0: there is no hold of the token (extend: it may be acquired again), -1: another token has the lock
--          (extend), or the hold is a reader's, -2: the value cannot be read, -3: the number is too far ahead of the
--          clock (acquire, extend and take with a number), acquire: -4 - n: refused through the nth millisecond from
--          now
local room = 64
local most, minute, day = 9007199254740991, 60000000, 86400000000
local key, verb = KEYS[1], ARGV[1]
local queue = 'quorumlock-queue:' .. key
local extends = verb == 'extend' or verb == 'keep'
local value = redis.pcall('GET', key)
if type(value) == 'table' then
  if string.sub(value.err, 1, 9) == 'WRONGTYPE' then
    return verb == 'release' and 0 or -2
  end
  return value
end
local time = redis.pcall('TIME')
if time.err then
  return time
end
local clock = time[1] * 1000000 + time[2]
local now = math.floor(clock / 1000)
local function written(mode, holds, fence, kept)
  local words, separator = {}, mode == 'w' and ' ' or ':'
  if fence > 0 then
    words[1] = string.format('f %.0f %.0f', fence, kept)
  end
  if #holds > 0 then
    words[#words + 1] = mode
  end
  for _, hold in ipairs(holds) do
    words[#words + 1] = string.format('%.0f%s%s', hold.deadline, separator, hold.token)
  end
  return table.concat(words, ' ')
end
local mode, stored, fence, kept = 'r', {}, 0, 0
local is_valid = value ~= ''
if value then
  value = string.gsub(string.gsub(value, '^%+.*$', ''), ' %+.*$', '')
  local rest, letter = value, string.sub(value, 1, 1)
  if letter == 'f' then
    fence, kept, rest = string.match(value, '^f (%d+) (%d+) ?(.*)$')
    fence, kept, rest = tonumber(fence or 0), tonumber(kept or 0), rest or ''
    letter = string.sub(rest, 1, 1)
  end
  mode = letter == 'w' and 'w' or 'r'
  is_valid = is_valid and fence <= most and kept <= most
  for deadline, token in string.gmatch(rest, mode == 'w' and '(%d+) ([0-9a-f]+)' or '(%d+):([0-9a-f]+)') do
    deadline = tonumber(deadline)
    is_valid = is_valid and deadline <= most and #token == 40
    stored[#stored + 1] = {deadline = deadline, token = token}
  end
  if not is_valid or mode == 'w' and #stored ~= 1 or written(mode, stored, fence, kept) ~= value then
    return verb == 'release' and 0 or -2
  end
end
local holds, own, first, last = {}, nil, most, 0
for _, hold in ipairs(stored) do
  if hold.deadline >= now then
    holds[#holds + 1] = hold
    first, last = math.min(first, hold.deadline), math.max(last, hold.deadline)
    if verb ~= 'leave' and hold.token == ARGV[2] then
      own = #holds
    end
  end
end
if #holds == 0 then
  mode = 'r'
end
if kept < now then
  fence, kept = 0, 0
end
local function store()
  local latest = kept
  for _, hold in ipairs(holds) do
    latest = math.max(latest, hold.deadline)
  end
  if latest == 0 then
    return redis.pcall('DEL', key)
  end
  local left = string.format('%.0f', latest - now + 1)
  local text = written(mode, holds, fence, kept)
  local done = redis.pcall('SET', key, text, 'PX', left)
  if done.err and (extends or verb == 'release') and redis.pcall('PEXPIRE', key, left) == 1 then
    done = redis.pcall('SET', key, text, 'PX', left)
  end
  return done
end
local function refused_for(access)
  if access == 'w' then
    return #holds > 0 and not (own and mode == 'w') and last - now + 1 or 0
  elseif own then
    return 0
  end
  return mode == 'w' and last - now + 1 or #holds >= room and first - now + 1 or 0
end
local function hold(ttl, access, retention, number)
  local answer = 1
  if retention then
    local least = tonumber(number or 0)
    if extends then
      fence = math.max(fence, least)
    elseif not own or fence == 0 then
      fence = math.max(fence + 1, math.min(least, clock + minute))
    end
    if number and fence > math.min(clock + minute + day, most) then
      return -3
    end
    kept = fence > 0 and math.max(kept, now + retention) or 0
    answer = not extends and string.format('%.0f', fence) or 1
  end
  if not own then
    own = #holds + 1
    holds[own] = {deadline = 0, token = ARGV[2]}
  end
  mode = access
  holds[own].deadline = math.max(verb == 'keep' and 0 or holds[own].deadline, now + ttl)
  local done = store()
  return type(done) == 'table' and done.err and done or answer
end
if verb == 'acquire' then
  local left = refused_for(ARGV[4])
  return left > 0 and -3 - left or hold(ARGV[3], ARGV[4], ARGV[5], ARGV[6])
elseif extends then
  if not own then
    return (#holds == 0 or mode == 'r' and ARGV[4] == 'r') and 0 or -1
  elseif mode == 'r' and ARGV[4] == 'w' then
    return -1
  end
  return hold(ARGV[3], ARGV[4], ARGV[5], ARGV[6])
end
-- No call waits: most takes end here, before any other function is defined.
local takes = verb == 'take' and ARGV[6] ~= 'q' and ARGV[6] ~= 's' and not own
if takes and refused_for(ARGV[8]) == 0 and redis.pcall('EXISTS', queue) == 0 then
  return hold(ARGV[3], ARGV[8], ARGV[9], ARGV[10])
end
local asked = verb == 'take' and ARGV[8] or 'r'
-- A reader that holds the lock asks again for another thread, as a new one.
local ours = own and (verb ~= 'take' or asked == 'w' and mode == 'w')
if verb == 'release' then
  if own then
    table.remove(holds, own)
    own = nil
    local done = store()
    if type(done) == 'table' and done.err then
      return done
    end
  end
  if (ARGV[3] or '') == '' and redis.pcall('EXISTS', queue) == 0 then
    return ours and 1 or 0
  end
end
local keeps_entry, holder = asked == 'w', #holds > 0 and holds[1].token or ''
local function kind_of(member)
  return string.sub(member, 17, 17)
end
local function fits(kind, rank, first)
  if kind == 'w' then
    return rank == 0 and #holds == 0
  end
  return first ~= 'w' and not (mode == 'w' and #holds > 0) and #holds - (own and 1 or 0) + rank < room
end
local function was_told()
  return false
end
local function grant_tells()
  return true
end
local function blocker(rank)
  if asked == 'w' or rank == 0 then
    return nil
  end
  local members = redis.pcall('ZRANGE', queue, 0, rank - 1)
  local in_front = 0
  for _, member in ipairs(members.err and {} or members) do
    if kind_of(member) == 'w' then
      local channel = 'quorumlock:' .. string.sub(member, 1, 16)
      -- The first one may have the lock, if no call holds it.
      local message = in_front + #holds == 0 and ARGV[6] ~= 'n' and string.sub(member, 17) .. ' ' .. key or '.'
      if #member > 17 and #member < 48 and redis.pcall('PUBLISH', channel, message) ~= 0 then
        return 'w'
      end
      redis.pcall('ZREM', queue, member)
    else
      in_front = in_front + 1
    end
  end
end
local function has_key()
  return ARGV[9] and string.format('%.0f', fence) or 1
end
local function grant()
  return hold(ARGV[3], asked, ARGV[9], ARGV[10])
end
local function held_for()
  return refused_for(asked)
end
local function slots()
  return '-'
end
