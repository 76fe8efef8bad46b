/// The way through the changes of several zones, a page of each at a time: a value that knows no network.
struct ZoneChangesWalk: Sendable {
    /// What a page meant for its zone.
    enum Step: Sendable {
        /// There is more, from this token on.
        case goesOn(CKServerChangeToken)
        /// This is where the walk ends; whether the server has more.
        case ends(CKServerChangeToken, hasMore: Bool)
        case fails(CKError)
        /// It is asked for again.
        case waits
    }

    private var calls: [ZoneChangesCall]
    private let isToTheEnd: Bool
    /// The zones that failed.
    private(set) var errors: [(zone: CKRecordZone.ID, error: CKError)] = []

    /// Zones in one request: their pages together are what the SDK holds at a time.
    static let zonesMax = 20

    /// - Parameter isToTheEnd: whether each zone is walked to its end, or one page of each is fetched.
    init(_ calls: [ZoneChangesCall], isToTheEnd: Bool) {
        var known: Set<CKRecordZone.ID> = []
        self.calls = calls.filter { known.insert($0.zone).inserted }
        self.isToTheEnd = isToTheEnd
    }

    /// What to ask for next; nil at the end.
    func next() -> [ZoneChangesCall]? { calls.isEmpty ? nil : Array(calls.prefix(Self.zonesMax)) }

    /// The zones that have not come to their end.
    var unfinished: [CKRecordZone.ID] { calls.map(\.zone) }

    /// A zone's page came.
    mutating func received(_ page: Result<ZoneChangesPage, CKError>, of zone: CKRecordZone.ID) -> Step {
        guard let place = calls.firstIndex(where: { $0.zone == zone }) else { return .waits }
        switch page {
        case .failure(let error):
            if let limit = calls[place].smallerLimit(after: error) {
                calls[place].limit = limit
                return .waits
            }
            calls.remove(at: place)
            errors.append((zone, error))
            return .fails(error)
        case .success(let page):
            if page.hasMore, isToTheEnd {
                // A zone that says there is more and stays where it is would be walked for ever.
                guard page.token != calls[place].token || !page.changes.isEmpty else {
                    let error = CKError.unreadable("new token, though it says that more is coming,")
                    calls.remove(at: place)
                    errors.append((zone, error))
                    return .fails(error)
                }
                calls[place].token = page.token
                return .goesOn(page.token)
            }
            calls.remove(at: place)
            return .ends(page.token, hasMore: page.hasMore)
        }
    }
}
