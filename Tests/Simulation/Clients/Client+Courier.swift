import Cluster
import HistoryChecks
import RecordModel
import Service

/// The token of a user's device, and what the courier handed out for it.
struct Courier: Sendable {
    var token: String
    /// Of the device; the empty one gets everything.
    var device: String
    /// The last number of the log that was known when the token was asked for: it begins later.
    var from: Int64
    var items: [Item] = []
    /// Whether something may have been handed out to nobody since the last item.
    var mayMiss = false
    /// Until when a request that nobody waits for any more may be handed something.
    var doubtUntil: UInt64 = 0
    static let doubt = 60 * World.second

    struct Item: Sendable {
        var notice: NotificationTwin.Notice
        /// Whether others before it may have been lost.
        var mayMiss: Bool
    }
}

// The web courier hands each notification out once, in the order of the log.
extension Client {
    func useCourier(of book: Watchbook) async {
        // A token lives for half a day.
        let options = nodes[0].options
        guard !isPlain, !options.hasLongDay, options.wrongDaysPercent == 0 else { return }
        guard book.courier != nil else { return await makeCourier(of: book) }
        for _ in 0..<world.random(1...3) where book.isUsed { await pollCourier(of: book) }
    }

    private func makeCourier(of book: Watchbook) async {
        let device = world.chance(50) ? "" : world.pick(Watchbook.devices)
        let (store, accountID, from) = (book.store, book.accountID, book.readers[""]?.last ?? 0)
        let answer = await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            try await visit.requireDirectory()
            let user = DeviceTokens.Device(store: store, accountID: accountID, client: device.isEmpty ? nil : device)
            return try await DeviceTokens(visit.service).create(user, .development)
        }
        switch answer {
        case .answered(let token, _): book.courier = Courier(token: token, device: device, from: from)
        case .failed(let failure): complain("a token is refused: \(failure.error)", book)
        case .nothing: break
        }
    }

    private func pollCourier(of book: Watchbook) async {
        guard var courier = book.courier else { return }
        let token = courier.token
        let answer = await ask(repeats: false, triesMax: 2) { visit throws(RequestFailure) in
            try await DeviceTokens(visit.service).next(token, address: nil)
        }
        switch answer {
        case .answered(nil, _): break
        case .answered(let payload?, let isFirst):
            do throws(UnexpectedAnswer) {
                guard let json = try? JSONParser.parse(payload) else { throw UnexpectedAnswer("no payload") }
                let notice = try NotificationTwin.Notice(0, json, of: book.user)
                let isDoubtful = world.now < courier.doubtUntil
                courier.items.append(.init(notice: notice, mayMiss: courier.mayMiss || isDoubtful || !isFirst))
                // The try before may still be handed something, too.
                if !isFirst { courier.doubtUntil = world.now + Courier.doubt }
                courier.mayMiss = isDoubtful || !isFirst
                world.met(.handedOut)
            } catch {
                complain("the courier: \(error)", book)
            }
        case .failed where recorder.files.isClockWrong(): return book.courier = nil
        case .failed(let failure): complain("the courier refuses: \(failure.error)", book)
        case .nothing(mayHaveBeenDone: true):
            (courier.mayMiss, courier.doubtUntil) = (true, world.now + Courier.doubt)
        case .nothing: break
        }
        book.courier = courier
    }

    /// Holds what was handed out against the log, which was read to its end.
    func readBackCourier(of book: Watchbook) async {
        guard let device = book.courier?.device, let reader = book.readers[device] else { return }
        // What others made may have been passed by while the user could not read it.
        let own = "\(book.accountID)-"
        func isOwnOrReadable(_ notice: NotificationTwin.Notice) -> Bool {
            guard notice.zone.owner == nil, let name = notice.record else { return true }
            return !name.contains("-\(Place.report)-") || name.hasPrefix(own)
        }
        let log = reader.notices.filter(isOwnOrReadable)
        func place(of notice: NotificationTwin.Notice) -> Int? {
            log.firstIndex { ($0.id, $0.changeID, $0.kind) == (notice.id, notice.changeID, notice.kind) }
        }
        for _ in 0..<4 where book.isUsed {
            guard let last = book.courier?.items.last?.notice, place(of: last) != log.count - 1 else { break }
            await pollCourier(of: book)
        }
        guard book.isUsed, let courier = book.courier else { return }
        var last: Int?
        for item in courier.items where isOwnOrReadable(item.notice) {
            guard let next = place(of: item.notice) else {
                return complain("the courier handed out \(item.notice), which is not in the log", book)
            }
            let isNext = last.map { item.mayMiss ? next > $0 : next == $0 + 1 } ?? (log[next].sequence > courier.from)
            if !isNext {
                return complain(
                    "the courier handed out \(log[next]) after \(last.map { "\(log[$0])" } ?? "nothing")", book)
            }
            last = next
        }
    }
}
