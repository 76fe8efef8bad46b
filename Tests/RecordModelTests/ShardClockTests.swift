import RecordModel
import Testing

@Suite("The time of a shard")
struct ShardClockTests {
    private let now: Int64 = 1_700_000_000_000
    private let minute = ShardClock.stepMax

    @Test("it follows commands by a minute at most, stands still for clocks that agree, and goes back for right ones")
    func steps() {
        #expect(ShardClock.time(0, after: now) == now)
        #expect(ShardClock.time(now, after: now + 5) == now + 5)
        #expect(ShardClock.time(now, after: now + minute) == now + minute)
        #expect(ShardClock.time(now, after: now + minute + 1) == now + minute)
        #expect(ShardClock.time(now, after: .max) == now + minute)
        #expect(ShardClock.time(now, after: now - minute) == now)
        #expect(ShardClock.time(now, after: now - minute - 1) == now - minute)
        #expect(ShardClock.time(now, after: .min) == now - minute)
        #expect(ShardClock.time(.max, after: .min) == .max - minute)
        #expect(ShardClock.time(.min, after: .max) == .min + minute)
        #expect(ShardClock.time(.min, after: .min) == .min)
        let hour = ShardClock.hourStepMax
        #expect(ShardClock.time(now, after: now + 2 * hour, stepMax: hour) == now + hour)
        #expect(ShardClock.time(now, after: now - 2 * hour, stepMax: hour) == now - hour)
        #expect(ShardClock.time(now, after: now - 2 * minute, stepMax: hour) == now - 2 * minute)
        #expect(ShardClock.time(now, after: now - minute, stepMax: hour) == now)
    }

    @Test("where half of the commands come from a wrong clock, it stays within minutes of the right one")
    func tugOfWar() {
        var time = now
        for number in 0..<10_000 {
            let right = now + Int64(number)
            time = ShardClock.time(time, after: right + 3 * 86_400_000)
            time = ShardClock.time(time, after: right)
            #expect((right...right + 2 * minute).contains(time))
        }
    }

    @Test("stamps do not run backwards by what clocks differ, and are not kept in the future by a wrong one")
    func stamps() {
        #expect(ShardClock.stamp(of: now, notBefore: now - 5) == now)
        #expect(ShardClock.stamp(of: now, notBefore: now + minute) == now + minute)
        #expect(ShardClock.stamp(of: now, notBefore: now + minute + 1) == now)
        #expect(ShardClock.stamp(of: .min, notBefore: .max) == .min)
        #expect(ShardClock.stamp(of: .max, notBefore: .min) == .max)
        #expect(ShardClock.stamp(of: 0, notBefore: .min) == 0)
    }
}
