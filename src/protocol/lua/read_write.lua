-- A read-write lock: one key, which is written by one command or not at all. Its value is "w deadline token" while a
-- writer has the lock, or "r deadline:token deadline:token ..." while readers have it; behind that, or alone, stands
-- "q deadline" while a writer waits. In front of all that, or alone, stands "f fence deadline", if a writer asked for a
-- number: the last one that was given out here, and until when it is kept. A deadline is the last millisecond of this
-- server's clock that counts. Each entry ends by itself, so that one of a reader that has crashed lasts no longer than
-- its own time, and no entry changes the end of another one. The key expires with the last of them. What cannot be read
-- so is left alone.
-- A read is granted while no writer has an entry and none waits, and there is room. A write is granted when there is no
-- entry. A write that is refused may leave the mark q, which refuses new readers and nothing else; the next writer
-- takes it away. An extension never shortens an entry, never sets one again that has ended, and never makes a reader a
-- writer; a writer it may make a reader.
-- A writer that asks for a number is given a greater one than the last with its entry, and may raise it to what other
-- nodes have given: by an extension, while its entry is there and is a writer's. All others keep the number as it is.
-- Numbers are as those in fence_key.lua, and one that is too far ahead of the clock is treated as there.
-- A server whose memory is full refuses SET as the first write of a script, and no later one. To extend and to release
-- then set the key's expiry first, to what SET sets it to, and so they are run there as well.
-- Errors are returned, not raised: servers before Redis 7 would wrap what they raise.
-- KEYS[1]  the lock's key
-- ARGV[1]  what to do: acquire, extend or release
-- ARGV[2]  the owner token
-- ARGV[3]  acquire, extend: r or w, what the client is from now on; release: what the name of the channel begins with
--          on which waiters listen, the key being the rest, or nothing: no hint is published
-- ARGV[4]  acquire, extend: how long the entry is to last from now on, in milliseconds; release: the hint
-- ARGV[5]  acquire of a writer: how long its mark is to last if it is refused, in milliseconds; 0: it leaves none
-- ARGV[6]  acquire, extend of a writer with a number: how long that is kept from now on, in milliseconds
-- ARGV[7]  acquire with ARGV[6]: the number to be had at least, a clock in microseconds; counts up to a minute after
--          this server's clock; extend: the number to raise it to, or nothing
-- returns  acquire with ARGV[7]: the number as a bulk string; otherwise 1: done (release: 2 when publishing is denied,
--          2 and the number of subscribers)
--          0: there is no entry of the token (extend: it may be acquired again), -1: another token has the lock
--          (extend), or the entry is a reader's, -2: the value cannot be read, -3: the number is too far ahead of the
--          clock (acquire, extend with ARGV[7]), -4 - n: refused through the nth millisecond from now (acquire)
local room = 64
local most, minute, day = 9007199254740991, 60000000, 86400000000
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  if string.sub(value.err, 1, 9) == 'WRONGTYPE' then
    return -2
  end
  return value
end
local time = redis.pcall('TIME')
if time.err then
  return time
end
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function written(mode, entries, mark, fence, kept)
  local words, separator = {}, mode == 'w' and ' ' or ':'
  if fence > 0 then
    words[1] = string.format('f %.0f %.0f', fence, kept)
  end
  if #entries > 0 then
    words[#words + 1] = mode
  end
  for _, entry in ipairs(entries) do
    words[#words + 1] = string.format('%.0f%s%s', entry.deadline, separator, entry.token)
  end
  if mark > 0 then
    words[#words + 1] = string.format('q %.0f', mark)
  end
  return table.concat(words, ' ')
end
local mode, stored, mark, fence, kept = 'r', {}, 0, 0, 0
if value then
  local rest, letter = value, string.sub(value, 1, 1)
  if letter == 'f' then
    fence, kept, rest = string.match(value, '^f (%d+) (%d+) ?(.*)$')
    fence, kept, rest = tonumber(fence or 0), tonumber(kept or 0), rest or ''
    letter = string.sub(rest, 1, 1)
  end
  mode = letter == 'w' and 'w' or 'r'
  mark = tonumber(string.match(rest, 'q (%d+)$') or 0)
  local is_valid = value ~= '' and mark <= most and fence <= most and kept <= most
  for deadline, token in string.gmatch(rest, mode == 'w' and '(%d+) ([0-9a-f]+)' or '(%d+):([0-9a-f]+)') do
    deadline = tonumber(deadline)
    is_valid = is_valid and deadline <= most and #token == 40
    stored[#stored + 1] = {deadline = deadline, token = token}
  end
  if not is_valid or mode == 'w' and #stored ~= 1 or written(mode, stored, mark, fence, kept) ~= value then
    return -2
  end
end
local what, own = ARGV[1], nil
local entries, first, last = {}, most, 0
for _, entry in ipairs(stored) do
  if entry.deadline >= now then
    entries[#entries + 1] = entry
    first = first < entry.deadline and first or entry.deadline
    last = last > entry.deadline and last or entry.deadline
    if entry.token == ARGV[2] then
      own = #entries
    end
  end
end
if #entries == 0 then
  mode = 'r'
end
if mark < now then
  mark = 0
end
if kept < now then
  fence, kept = 0, 0
end
local function store()
  local latest = mark > kept and mark or kept
  for _, entry in ipairs(entries) do
    latest = latest > entry.deadline and latest or entry.deadline
  end
  if latest == 0 then
    return redis.pcall('DEL', KEYS[1])
  end
  local left = string.format('%.0f', latest - now + 1)
  local text = written(mode, entries, mark, fence, kept)
  local done = redis.pcall('SET', KEYS[1], text, 'PX', left)
  if done.err and what ~= 'acquire' and redis.pcall('PEXPIRE', KEYS[1], left) == 1 then
    done = redis.pcall('SET', KEYS[1], text, 'PX', left)
  end
  return done
end
local is_full = #entries >= room
if what == 'acquire' then
  local refused_until = 0
  if ARGV[3] == 'w' then
    if #entries > 0 and not (own and mode == 'w') then
      refused_until = last
      if tonumber(ARGV[5]) > 0 then
        mark = math.max(mark, now + ARGV[5])
        store()
      end
    elseif not own then
      mark = 0
    end
  else
    if mode == 'w' and not own then
      refused_until = last
    elseif is_full and not own then
      refused_until = first
    end
    refused_until = math.max(refused_until, mark)
  end
  if refused_until > 0 then
    return now - refused_until - 4
  end
elseif not own then
  if what == 'release' or #entries == 0 or mode == 'r' and ARGV[3] == 'r' then
    return 0
  end
  return -1
elseif what == 'extend' and mode == 'r' and ARGV[3] == 'w' then
  return -1
end
local answer = 1
if what == 'release' then
  table.remove(entries, own)
else
  if ARGV[6] then
    local clock, least = time[1] * 1000000 + time[2], tonumber(ARGV[7] or 0)
    if what == 'extend' then
      fence = math.max(fence, least)
    elseif not own or fence == 0 then
      fence = math.max(fence + 1, math.min(least, clock + minute))
    end
    if ARGV[7] and fence > math.min(clock + minute + day, most) then
      return -3
    end
    kept = fence > 0 and math.max(kept, now + ARGV[6]) or 0
    answer = what == 'acquire' and string.format('%.0f', fence) or 1
  end
  if not own then
    own = #entries + 1
    entries[own] = {deadline = 0, token = ARGV[2]}
  end
  mode = ARGV[3]
  entries[own].deadline = math.max(entries[own].deadline, now + ARGV[4])
end
local done = store()
if type(done) == 'table' and done.err then
  return done
end
if what ~= 'release' or not ARGV[3] or #entries > 0 and not is_full then
  return answer
end
local heard = redis.pcall('PUBLISH', ARGV[3] .. KEYS[1], ARGV[4])
if type(heard) == 'table' then
  return 2
end
return heard > 0 and 2 + heard or 1
