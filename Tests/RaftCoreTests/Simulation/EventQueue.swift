/// What is going to happen, earliest first; of what happens at one time, in the order in which it was scheduled.
struct EventQueue<Event> {
    private var heap: [Scheduled] = []
    private var sequence: UInt64 = 0

    private struct Scheduled {
        var time: UInt64
        var sequence: UInt64
        var event: Event

        func isBefore(_ other: Scheduled) -> Bool { (time, sequence) < (other.time, other.sequence) }
    }

    var isEmpty: Bool { heap.isEmpty }

    mutating func add(_ event: Event, at time: UInt64) {
        sequence += 1
        heap.append(Scheduled(time: time, sequence: sequence, event: event))
        var place = heap.count - 1
        while place > 0, heap[place].isBefore(heap[(place - 1) / 2]) {
            heap.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    mutating func next() -> (time: UInt64, event: Event)? {
        guard let first = heap.first, let last = heap.popLast() else { return nil }
        if heap.isEmpty { return (first.time, first.event) }
        heap[0] = last
        var place = 0
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2] where child < heap.count && heap[child].isBefore(heap[least]) {
                least = child
            }
            if least == place { break }
            heap.swapAt(place, least)
            place = least
        }
        return (first.time, first.event)
    }
}
