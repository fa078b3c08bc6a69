-- The queue of those that wait for a lock: the part of a script that is the same for locks of all kinds.
-- A queue is a sorted set. A member is an entry: 16 digits that name a client, a letter for the kind of the lock, of a
-- permit the number of permits and ":", and the number of the call. Its score is the call's ticket, in microseconds.
-- Whether an entry counts is decided by its client's channel: one that has no receiver is removed when it is first.
-- The queue's key is touched by pcall alone: a user without the right to it still takes and releases locks.
-- A message is the entry without the client, a space and the lock's key; "?" in front: the entry is the next one; "."
-- in front: it means nothing, and shows whether there is a receiver.
-- The part before this one defines:
--   key, queue        their names
--   ours              whether the lock is held with the caller's token; of a release: was
--   holder            what the key of the lock holds, or nothing, an empty string or false
--   asked             the kind of the entry that the caller has or would have
--   kind_of(member)   the kind of an entry
--   fits(kind, rank, first)  whether an entry with so many in front, the first of which is of this kind, would be
--                     granted now
--   blocker(rank)     the kind of an entry that keeps the caller from the lock with so many in front, or nil
--   has_key()         take: what to reply where the lock is held with the caller's token
--   grant()           gives the lock to the caller; what to reply
--   keeps_entry       whether a grant leaves the caller's entry in the queue
--   grant_tells()     otherwise: whether more may be granted than one run tells, so that a grant tells another one
--   was_told(kind, rank)  whether an entry with so many in front would have been granted before this release or leave,
--                     too: it was told then
--   held_for()        for how long the lock is held, in milliseconds: 0 when it is free, -1 without an end
--   slots()           of permits: a letter for each slot, f(ree), t(aken) or e(ndless); otherwise "-"
-- KEYS[1]  the lock's key
-- ARGV of the verbs:
--   release  ends a hold, or undoes an attempt.
--     [2] the owner token  [3] the caller's entry, or nothing  [4] its ticket: the entry is stored again; nothing: it
--     is removed
--   take     takes the lock if it is free and no other one is first, or stores the entry.
--     [2] the owner token  [3] for how long to hold the lock, in milliseconds  [4] the entry  [5] the ticket, or the
--     caller's clock  [6] p: the ticket is the one that is stored, or made of the clock; f: it is ARGV[5]; q, s: as p
--     and f, and nothing is granted; n: no entry is stored  [7] a first entry that let the caller wait for too long, or
--     nothing: it and those behind it are removed up to the caller's, and nothing is granted
--   leave    removes the entry.  [2] the entry; nothing: only those that wait are told
-- returns  release, leave: 1: done (release: the lock was held with the token), 2: done, and another client was told,
--          3: done, and more entries without a receiver may be in front, 4: done, and the user may not publish; 0, -2,
--          -3, -4: the same, where there was nothing to do; the error that keeps the entry from being removed
--          take: what grant() returns, or a string of seven fields: whether the entry was stored before (y), is stored
--          now (n), could not be stored for want of memory (o) or of permission (d); the ticket; how many are in front;
--          held_for(); the first 8 digits of the holder's owner token, or the last 8 characters of what else the lock's
--          key holds and "!", or "-" where it holds nothing; slots(); the first entry
local verb, day = ARGV[1], 86400000000
local me = (verb == 'take' and ARGV[4] or verb == 'leave' and ARGV[2] or verb == 'release' and ARGV[3]) or ''
local told, more, denied = 0, false, false
local function tell(member, mark)
  -- No client has written it, and none can name it.
  if #member < 18 or #member > 47 then
    return false
  end
  local message = mark .. string.sub(member, 17) .. ' ' .. key
  local heard = redis.pcall('PUBLISH', 'quorumlock:' .. string.sub(member, 1, 16), message)
  -- Without permission to publish, or to this channel, all count as alive.
  denied = denied or type(heard) == 'table'
  return heard ~= 0
end
-- Tells those that would be granted now, "most" of them, and the next one that it is that. Removes those without a
-- receiver. With a mark, the first ones get that instead, and those from the caller's entry on nothing.
local function wake(most, mark)
  local rank, first = 0, nil
  -- A dead entry costs 2 µs.
  for _, count in ipairs({2, 256, 2048, 8192}) do
    local members = redis.pcall('ZRANGE', queue, rank, rank + count - 1)
    if members.err then
      return
    end
    for _, member in ipairs(members) do
      local is_me, kind = member ~= '' and member == me, kind_of(member)
      if told < most and fits(kind, rank, first) then
        local is_known = is_me or not mark and was_told(kind, rank)
        if is_me and mark then
          return
        elseif is_known or tell(member, mark or '') then
          told = is_known and told or told + 1
          first, rank = first or kind, rank + 1
        else
          redis.pcall('ZREM', queue, member)
        end
      elseif not first or is_me or mark == '.' or tell(member, '?') then
        return
      else
        redis.pcall('ZREM', queue, member)
      end
    end
    if #members < count then
      return
    end
  end
  more = true
end
if verb == 'release' or verb == 'leave' then
  local done = verb == 'release' and ours
  if verb == 'release' and (ARGV[4] or '') ~= '' then
    redis.pcall('ZADD', queue, ARGV[4], me)
    redis.pcall('PEXPIRE', queue, 60000)
  elseif me ~= '' then
    local gone = redis.pcall('ZREM', queue, me)
    -- It is there still: the server refuses writes at present.
    if not done and type(gone) == 'table' and type(redis.pcall('ZSCORE', queue, me)) == 'string' then
      return gone
    end
    if verb == 'leave' and gone ~= 1 then
      return 0
    end
    done = done or verb == 'leave'
  end
  wake(64)
  local reply = more and 3 or denied and 4 or told > 0 and 2 or 1
  return done and reply or reply > 1 and -reply or 0
end
if ours then
  return has_key()
end
local mode, challenged, ticket, state = ARGV[6], ARGV[7] or '', tonumber(ARGV[5]), 'n'
local grants = mode ~= 'q' and mode ~= 's'
-- As Redis 6.2 and 7.0 say it, and 7.2 and Valkey.
local function is_denied(text)
  return string.find(text, 'user executing the script', 1, true) or string.find(text, 'ACL failure', 1, true)
end
local function first_entry()
  local first = redis.pcall('ZRANGE', queue, 0, 0)
  return not first.err and first[1]
end
if mode ~= 'n' then
  local stored = redis.pcall('ZSCORE', queue, me)
  if type(stored) == 'table' then
    if string.sub(stored.err, 1, 9) == 'WRONGTYPE' then
      redis.pcall('DEL', queue)
    end
    stored = nil
  end
  stored = stored and tonumber(stored)
  if mode == 'p' or mode == 'q' then
    local time = redis.pcall('TIME')
    local latest = (time.err and ticket or time[1] * 1000000 + time[2]) + day
    local function last_score()
      local last = redis.pcall('ZREVRANGE', queue, 0, 0, 'WITHSCORES')
      return tonumber(not last.err and last[2] or 0)
    end
    local last = last_score()
    if last > latest then
      -- An entry that is more than a day ahead is damage, and would let all tickets behind it be so.
      redis.pcall('ZREMRANGEBYSCORE', queue, string.format('(%.0f', latest), '+inf')
      last = last_score()
    end
    ticket = math.max(math.min(ticket, latest), last + 1)
    if stored and stored <= latest then
      ticket = stored
    else
      stored = nil
    end
  end
  if not (grants and fits(asked, 0, nil) and redis.pcall('EXISTS', queue) == 0) then
    if stored ~= ticket then
      local added = redis.pcall('ZADD', queue, string.format('%.0f', ticket), me)
      state = type(added) ~= 'table' and state or is_denied(added.err) and 'd' or 'o'
    end
    -- After any write, a server whose memory is full would store the lock.
    if state == 'n' then
      redis.pcall('PEXPIRE', queue, 60000)
    end
  end
  state = stored and state == 'n' and 'y' or state
end
local function rank_of()
  local rank = redis.pcall('ZRANK', queue, me)
  rank = type(rank) == 'number' and rank or redis.pcall('ZCARD', queue)
  return type(rank) == 'number' and rank or 0
end
local rank = rank_of()
if challenged ~= '' and challenged ~= me and first_entry() == challenged then
  for _ = 1, 128 do
    local first = first_entry()
    if not first or first == me or redis.pcall('ZREM', queue, first) ~= 1 then
      break
    end
    tell(first, '')
  end
  grants = false
  rank = rank_of()
elseif not fits(asked, rank, nil) then
  -- A lock with one holder: the first one may ask. Otherwise only the dead are removed.
  wake(64, mode ~= 'n' and keeps_entry and asked ~= 'w' and '' or '.')
  rank = rank > 0 and rank_of() or 0
end
if grants and fits(asked, rank, nil) and fits(asked, rank, blocker(rank)) then
  local answer = grant()
  if answer and not (type(answer) == 'table' and answer.err) and not keeps_entry then
    redis.pcall('ZREM', queue, me)
    -- One in front has been told, and not asked so far: it may be dead.
    if rank > 0 or grant_tells() then
      wake(told + 1)
    end
  end
  if answer then
    return answer
  end
end
-- An owner token of ours is 40 digits, and a label behind a space. The release of any other one tells no call.
local value = '-'
if holder and holder ~= '' then
  local digits, behind = string.match(holder, '^(%x*)(.?)')
  local is_ours = #digits == 40 and (behind == '' or behind == ' ')
  value = string.gsub(string.sub(holder, is_ours and 1 or -8, is_ours and 8 or -1), '[^0-~]', '_')
  value = value .. (is_ours and '' or '!')
end
-- blocker() may have removed entries in front of a reader. A first one of over 47 bytes is of no program of ours.
rank = asked == 'r' and rank_of() or rank
return string.format('%s %.0f %.0f %.0f %s %s ', state, ticket or 0, rank, held_for(), value, slots())
  .. string.sub(first_entry() or '', 1, 48)
