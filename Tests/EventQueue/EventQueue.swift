/// What is going to happen, earliest first; of what happens at one time, in the order in which it was scheduled.
///
/// Inlinable, because simulators spend their time with it.
package struct EventQueue<Event> {
    @usableFromInline
    var heap: [Scheduled] = []
    @usableFromInline
    var sequence: UInt64 = 0

    @usableFromInline
    struct Scheduled {
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
        func isBefore(_ other: Scheduled) -> Bool { (time, sequence) < (other.time, other.sequence) }
    }

    @inlinable package init() {}

    @inlinable package var count: Int { heap.count }

    /// When the next event is due; nil if there is none.
    @inlinable package var nextTime: UInt64? { heap.first?.time }

    @inlinable
    package mutating func add(_ event: Event, at time: UInt64) {
        sequence += 1
        heap.append(Scheduled(time: time, sequence: sequence, event: event))
        var place = heap.count - 1
        while place > 0, heap[place].isBefore(heap[(place - 1) / 2]) {
            heap.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    @inlinable
    package mutating func next() -> (time: UInt64, event: Event)? {
        guard !heap.isEmpty else { return nil }
        if heap.count > 1 { heap.swapAt(0, heap.count - 1) }
        let first = heap.removeLast()
        var place = 0
        while true {
            var least = place
            let left = 2 * place + 1
            if left < heap.count, heap[left].isBefore(heap[least]) { least = left }
            if left + 1 < heap.count, heap[left + 1].isBefore(heap[least]) { least = left + 1 }
            if least == place { break }
            heap.swapAt(place, least)
            place = least
        }
        return (first.time, first.event)
    }
}
