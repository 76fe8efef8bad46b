import DequeModule
package import RecordModel
package import Wire

/// How far back a series goes, and in what steps.
package enum TelemetryRange: String, Hashable, Sendable, CaseIterable, WireValue {
    case hour, day, month

    /// One step.
    package var stepMilliseconds: Int64 {
        switch self {
        case .hour: 60_000
        case .day: 600_000
        case .month: 3_600_000
        }
    }

    /// How many there are.
    package var steps: Int {
        switch self {
        case .hour: 60
        case .day: 144
        case .month: 720
        }
    }

    /// When the step began that a time, in milliseconds since 1970, is in.
    package func begin(of time: Int64) -> Int64 { time - time % stepMilliseconds }
}

/// What cells are kept apart by.
package struct TelemetryKey: Hashable, Sendable, WireMessage {
    /// Empty for requests of no container, and of one that there is no room for.
    package var container: String
    /// The container's.
    package var environment: Environment?
    /// What the requests do.
    package var group: OperationGroup

    /// For a fixed order.
    fileprivate var name: String { "\(container)/\(environment?.rawValue ?? "")/\(group.rawValue)" }

    package static var blank: Self { TelemetryKey(container: "", group: .other) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &container)
        try wire.field(2, &environment)
        try wire.field(3, &group)
    }
}

/// Where requests go.
struct TelemetryPlace: Hashable {
    /// Empty for requests of none.
    var container: String
    /// The container's.
    var environment: Environment?
}

/// What a node's requests came to: the last hour by minutes, the last day by ten minutes, 30 days by hours. A value:
/// time is passed in.
///
/// A request is counted in its minute only; when that is over it is added to its ten minutes and its hour. Where there
/// are too many cells, the oldest steps of the range that has most of them are dropped.
struct TelemetrySeries {
    private struct Step {
        /// Milliseconds since 1970.
        let begin: Int64
        var cells: [TelemetryKey: TelemetryCell] = [:]
    }

    /// Of all steps. A cell takes some 300 bytes, and 2 KB at most.
    static let cellsMax = 20_000
    /// Of one step: further containers count together.
    static let keysMax = 500

    private var minute = Step(begin: 0)
    /// Those that are over, and of the longer ranges the present one, as far as its minutes are over.
    private var past: [TelemetryRange: Deque<Step>] = [:]
    /// What the minutes that are over came to by day, until somebody takes it.
    var days = DayCounts()

    init() {}

    /// Ends the minute at hand, if it is over at a time.
    mutating func endMinute(at time: Int64) {
        if TelemetryRange.hour.begin(of: time) != minute.begin { beginMinute(at: time) }
    }

    /// Counts a request that was answered at a time.
    /// - Parameter container: what it counts for; nil: the container that it names.
    mutating func count(_ entry: RequestEntry, in container: String? = nil, at time: Int64) {
        let key = TelemetryKey(
            container: container ?? entry.container, environment: entry.environment, group: entry.group)
        change(key, at: time) { $0.count(entry) }
    }

    mutating func count(notifications: Int, container: String, _ environment: Environment, at time: Int64) {
        let key = TelemetryKey(container: container, environment: environment, group: .notifications)
        change(key, at: time) { $0.count(notifications: notifications) }
    }

    private mutating func change(_ key: TelemetryKey, at time: Int64, _ change: (inout TelemetryCell) -> Void) {
        endMinute(at: time)
        var key = key
        if minute.cells.count >= Self.keysMax, minute.cells[key] == nil { key.container = "" }
        change(&minute.cells[key, default: TelemetryCell()])
    }

    private mutating func beginMinute(at time: Int64) {
        let over = minute
        minute = Step(begin: TelemetryRange.hour.begin(of: time))
        if !over.cells.isEmpty {
            for range in TelemetryRange.allCases { add(over, to: range) }
            days.add(over.cells, from: over.begin)
        }
        for range in TelemetryRange.allCases {
            let oldest = range.begin(of: time) - Int64(range.steps) * range.stepMilliseconds
            // A clock that was set back leaves steps of a time that is to come again.
            past[range]?.removeAll { $0.begin <= oldest || $0.begin > minute.begin }
        }
        while cellCount > Self.cellsMax {
            let fullest = TelemetryRange.allCases.max { cells(of: $0) < cells(of: $1) } ?? .month
            past[fullest]?.removeFirst()
        }
    }

    private func cells(of range: TelemetryRange) -> Int { past[range, default: []].reduce(0) { $0 + $1.cells.count } }
    private var cellCount: Int { TelemetryRange.allCases.reduce(0) { $0 + cells(of: $1) } }

    private mutating func add(_ step: Step, to range: TelemetryRange) {
        let begin = range.begin(of: step.begin)
        if past[range]?.last?.begin != begin { past[range, default: []].append(Step(begin: begin)) }
        let place = past[range, default: []].count - 1
        past[range]?[place].cells.merge(step.cells) { old, new in
            var sum = old
            sum.add(new)
            return sum
        }
    }

    /// What clients' requests of the last minutes came to, by container and environment.
    func recent(minutes: Int64, at time: Int64) -> [TelemetryPlace: TelemetryCell] {
        let oldest = time - minutes * TelemetryRange.hour.stepMilliseconds
        var cells: [TelemetryPlace: TelemetryCell] = [:]
        for step in past[.hour, default: []] + [minute] where step.begin > oldest && step.begin <= time {
            for (key, cell) in step.cells where key.group != .administration {
                cells[TelemetryPlace(container: key.container, environment: key.environment), default: .blank].add(cell)
            }
        }
        return cells
    }

    /// What the cells that a filter lets through come to, step by step, and over all steps for each key.
    func sums(_ filter: TelemetryFilter, at time: Int64) -> TelemetrySums {
        var sums = TelemetrySums()
        let range = filter.range
        let oldest = range.begin(of: time) - Int64(range.steps - 1) * range.stepMilliseconds
        var byKey: [TelemetryKey: TelemetryCell] = [:]
        for step in past[range, default: []] + [minute] where step.begin >= oldest && step.begin <= time {
            var sum = TelemetryCell()
            for (key, cell) in step.cells where filter.admits(key) {
                sum.add(cell)
                byKey[key, default: TelemetryCell()].add(cell)
            }
            guard sum != TelemetryCell() else { continue }
            sums.add(TelemetrySums.Point(begin: range.begin(of: step.begin), cell: sum))
        }
        sums.keys = byKey.map { TelemetrySums.Part(key: $0.key, cell: $0.value) }
        sums.sortKeys()
        return sums
    }
}

/// Which part of the series is wanted; what is nil lets all through.
package struct TelemetryFilter: Hashable, Sendable, WireMessage {
    /// How far back.
    package var range: TelemetryRange
    /// Whose requests may be seen at all; nil: everybody's.
    package var visible: [String]?
    /// Of this container.
    package var container: String?
    /// Of this environment.
    package var environment: Environment?
    /// Of this group of operations.
    package var group: OperationGroup?

    package init(_ range: TelemetryRange) { self.range = range }

    package static var blank: Self { TelemetryFilter(.hour) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &range)
        try wire.field(2, &visible, members: 3)
        try wire.field(4, &container)
        try wire.field(5, &environment)
        try wire.field(6, &group)
    }

    func admits(_ key: TelemetryKey) -> Bool {
        (visible?.contains(key.container) ?? true) && (container.map { $0 == key.container } ?? true)
            && (environment == nil || environment == key.environment) && (group == nil || group == key.group)
    }
}

/// What requests came to over a range, of one node or of several.
package struct TelemetrySums: Hashable, Sendable, WireMessage {
    /// One step.
    package struct Point: Hashable, Sendable, WireMessage {
        /// When it began, in milliseconds since 1970.
        package var begin: Int64
        /// What its requests came to.
        package var cell: TelemetryCell

        package static var blank: Self { Point(begin: 0, cell: TelemetryCell()) }

        package mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &begin)
            try wire.field(2, &cell)
        }
    }

    /// One kind of requests, over all steps.
    package struct Part: Hashable, Sendable, WireMessage {
        /// Which requests.
        package var key: TelemetryKey
        /// What they came to.
        package var cell: TelemetryCell

        package static var blank: Self { Part(key: .blank, cell: TelemetryCell()) }

        package mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &key)
            try wire.field(2, &cell)
        }
    }

    /// Steps with anything in them, ascending.
    package var points: [Point] = []
    /// Those with most requests first; at most `keysMax`.
    package var keys: [Part] = []

    private static let keysMax = 1_000

    package static var blank: Self { TelemetrySums() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &points)
        try wire.field(2, &keys)
    }

    mutating func add(_ point: Point) {
        let place = points.firstIndex { $0.begin >= point.begin } ?? points.count
        if place < points.count, points[place].begin == point.begin {
            points[place].cell.add(point.cell)
        } else {
            points.insert(point, at: place)
        }
    }

    mutating func add(_ other: TelemetrySums) {
        for point in other.points { add(point) }
        var byKey = Dictionary(uniqueKeysWithValues: keys.map { ($0.key, $0.cell) })
        for part in other.keys { byKey[part.key, default: TelemetryCell()].add(part.cell) }
        keys = byKey.map { Part(key: $0.key, cell: $0.value) }
        sortKeys()
    }

    mutating func sortKeys() {
        keys.sort { left, right in
            if left.cell.requests != right.cell.requests { return left.cell.requests > right.cell.requests }
            return left.key.name < right.key.name
        }
        if keys.count > Self.keysMax { keys.removeLast(keys.count - Self.keysMax) }
    }
}
