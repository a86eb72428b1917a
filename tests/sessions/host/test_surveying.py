from environments.contract import SurveyQuestion
from sessions.host.surveying import COMMON, questions


def test_an_environment_adds_its_questions_and_may_replace_a_common_one() -> None:
    own = (SurveyQuestion("bound", "What held you back?"), SurveyQuestion("difficulty", "How hard, of ten?"))
    keys = [question.key for question in questions(own)]
    assert keys.count("difficulty") == 1
    assert set(keys) == {question.key for question in COMMON} | {"bound"}
    assert next(q for q in questions(own) if q.key == "difficulty").ask == "How hard, of ten?"
