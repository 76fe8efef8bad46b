public import HeapModule

/// What is going to happen, earliest first; of what happens at one time, in the order in which it was scheduled.
///
/// Public and inlinable, because simulators spend their time with it: only then is it compiled for their events.
public struct EventQueue<Event> {
    @usableFromInline
    var heap = Heap<Scheduled>()
    @usableFromInline
    var sequence: UInt64 = 0

    @usableFromInline
    struct Scheduled: Comparable {
        @usableFromInline
        var time: UInt64
        @usableFromInline
        var sequence: UInt64
        @usableFromInline
        var event: Event

        @inlinable
        init(time: UInt64, sequence: UInt64, event: Event) {
            self.time = time
            self.sequence = sequence
            self.event = event
        }

        @inlinable
        static func < (one: Self, other: Self) -> Bool {
            one.time == other.time ? one.sequence < other.sequence : one.time < other.time
        }

        @inlinable
        static func == (one: Self, other: Self) -> Bool { one.sequence == other.sequence }
    }

    @inlinable public init() {}

    @inlinable public var count: Int { heap.count }

    /// When the next event is due; nil if there is none.
    @inlinable public var nextTime: UInt64? { heap.min?.time }

    @inlinable
    public mutating func add(_ event: Event, at time: UInt64) {
        sequence += 1
        heap.insert(Scheduled(time: time, sequence: sequence, event: event))
    }

    @inlinable
    public mutating func next() -> (time: UInt64, event: Event)? {
        heap.popMin().map { ($0.time, $0.event) }
    }
}
