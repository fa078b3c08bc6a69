-- A fair lock: the lock's key is that of a plain lock, and a queue stands beside it. This is the part of the script
-- that is about the lock's key. It ends with what queue.lua, the other part, needs.
-- Each call writes at most one of the two keys, by one command: a restart cannot lose half of it.
-- Errors are returned, not raised: servers before Redis 7 would wrap what they raise.
-- KEYS[1]  the lock's key
-- KEYS[2]  the queue's key
-- ARGV[1]  what to do: take, leave or release
-- take:    sets the lock's key if it is free and the caller is first: if exactly its ticket is stored here and the
--          least one, or if no other one waits and it has no ticket, or no place is noted. Otherwise notes its place.
--          If the lock is free, and another one is first now, a hint for that one is published: it may have become so
--          just now, and may not know.
--   ARGV[2]  the owner token; a space and the label of the holder, if it has one
--   ARGV[3]  how long the lock is to be held from now on, in milliseconds
--   ARGV[4]  the caller's id
--   ARGV[5]  its ticket; 0: the one that is stored here, or the next one
--   ARGV[6]  how long its place counts from now on, in milliseconds; 0: no place is noted
--   ARGV[7]  as ARGV[3] of leave
--   ARGV[8]  the hint
--   returns  1: the key is set, or was with this token; -2: what stands under the queue's key cannot be read; otherwise
--            a string of five fields: how long the lock is held from now on at most, in milliseconds, 0 when it is
--            free, -1 without an end; the ticket; the position, counted from 1; for how long the first place counts if
--            it is another one's, or 0; and the id of the first
-- leave:   deletes the caller's place, and may put one at the end for the next call of its program. If the caller was
--          first, a hint for the next one is published, whether the lock is free or not: the release of a client that
--          does not queue up names none.
--   ARGV[2]  the caller's id
--   ARGV[3]  what the name of the channel begins with, the lock's key being the rest, or nothing or an empty string: no
--            hint
--   ARGV[4]  the hint
--   ARGV[5]  the next call's id, or nothing
--   ARGV[6]  how long its place counts from now on, in milliseconds
--   returns  1, or 0 when there was no place and is none
-- release: deletes the lock's key if it holds our token, and publishes a hint, with "@" and the id of the first.
--   ARGV[2]  the owner token
--   ARGV[3]  as with leave
--   ARGV[4]  the hint
--   ARGV[5]  the id of a caller that has not won the lock, and undoes: the hint is only for another one, or nothing
--   returns  0 when the key was not ours; when it was and is gone now, 1, or 2 when publishing is denied, or 2 and the
--            number of subscribers
local what = ARGV[1]
local owner = redis.pcall('GET', KEYS[1])
if type(owner) == 'table' then
  if string.sub(owner.err, 1, 9) ~= 'WRONGTYPE' then
    return owner
  end
  owner = ''
end
if what == 'take' and owner == ARGV[2] then
  return 1
elseif what == 'release' then
  if owner ~= ARGV[2] then
    return 0
  end
  local gone = redis.pcall('DEL', KEYS[1])
  if gone ~= 1 or (ARGV[3] or '') == '' then
    return gone
  end
end
local time = redis.pcall('TIME')
if time.err then
  return what == 'release' and 1 or time
end
local is_free, undoes, channel, hint = not owner, ARGV[5], ARGV[3], ARGV[4]
if what == 'take' then
  channel, hint = ARGV[7], ARGV[8]
end
local function held_for()
  local left = redis.pcall('PTTL', KEYS[1])
  return type(left) == 'table' and left or left < 0 and -1 or left + 1
end
local function grant()
  local set = redis.pcall('SET', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[3])
  return set and set.err and set or 1
end
